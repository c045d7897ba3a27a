/** Whatever the other side sends, what comes out is whole or a typed error. */
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  entryFromDiscussion,
  entryFromDiscussionNode,
  entryFromIssue,
  entryFromRelease,
  keyOfEntry,
} from '../../../src/runner/sync/cache-entry.ts';
import {
  DEFAULT_SYNC_CONFIG,
  parseSyncConfig,
  withoutSecret,
} from '../../../src/runner/sync/sync-config.ts';
import { parsePullRequest, parsePushRequest } from '../../../src/runner/sync/sync-requests.ts';
import { AppError } from '../../../src/shared/app-error.ts';
import { createFixture } from './fixture.ts';

const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.integer(),
  fc.constant('2026-01-01T00:00:00Z'),
);
const NAMES =
  'number id title state user author labels body url html_url created_at updated_at createdAt category tag_name name draft';
const thing = fc.dictionary(fc.constantFrom(...NAMES.split(' ')), value);

test('entries of the caches', () => {
  fc.assert(
    fc.property(fc.oneof(thing, value), (json) => {
      for (const read of [
        entryFromIssue,
        entryFromDiscussion,
        entryFromDiscussionNode,
        entryFromRelease,
      ]) {
        const entry = read(json);
        if (entry === undefined) continue;
        expect(keyOfEntry(entry)).toMatch(/^\d+$/);
        expect(JSON.parse(JSON.stringify(entry))).toEqual(entry);
        for (const time of [entry.createdAt, entry.updatedAt]) {
          expect(new Date(time).toISOString()).toBe(time);
        }
        for (const text of [entry.title, entry.state, entry.author, entry.body, entry.url]) {
          expect(typeof text).toBe('string');
        }
        expect(entry.labels.every((label) => typeof label === 'string')).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

function outcomeOf<T>(action: () => T): T | AppError {
  try {
    return action();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

const flag = fc.oneof({ weight: 4, arbitrary: fc.boolean() }, { weight: 1, arbitrary: value });
const config = fc.record(
  {
    enabled: flag,
    host: fc.record(
      {
        owner: fc.oneof(fc.constantFrom('octo', '', '-x'), value),
        repo: fc.oneof(fc.constantFrom('demo', '.github', '..'), value),
        syncIssues: flag,
        pollIntervalMs: fc.oneof(fc.constantFrom(0, 5000, 4999), value),
        webhookSecret: fc.oneof(fc.constantFrom('********', 'hush'), value),
      },
      { requiredKeys: [] },
    ),
    deploymentLog: fc.record(
      { issueNumber: fc.oneof(fc.nat(9), value), environments: value },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

test('configurations: refused with a path, or read back as they were written', () => {
  fc.assert(
    fc.property(fc.oneof(config, value), (body) => {
      const outcome = outcomeOf(() => parseSyncConfig(body, DEFAULT_SYNC_CONFIG));
      if (outcome instanceof AppError) {
        expect(outcome.reason).toBe('INVALID_VALUE');
        expect(typeof outcome.metadata['field']).toBe('string');
        return;
      }
      expect(parseSyncConfig(outcome, DEFAULT_SYNC_CONFIG)).toEqual(outcome);
      expect(parseSyncConfig(withoutSecret(outcome), outcome)).toEqual(outcome);
    }),
    { numRuns: 500 },
  );
});

test('requests', () => {
  const body = fc.dictionary(
    fc.constantFrom(
      'full',
      'only',
      'title',
      'base',
      'head',
      'branches',
      'prefix',
      'draft',
      'dryRun',
      'x',
    ),
    value,
  );
  fc.assert(
    fc.property(fc.oneof(body, value), (json) => {
      for (const parse of [parsePullRequest, parsePushRequest]) {
        const outcome = outcomeOf(() => parse(json));
        if (outcome instanceof AppError) expect(outcome.reason).toBe('INVALID_REQUEST');
      }
    }),
    { numRuns: 500 },
  );
});

test('deliveries', async () => {
  const { sync } = await createFixture({ settings: { webhookSecret: 'secret' } });
  const signed = fc.boolean();
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 50, size: 'max' }),
    thing.map((json) => new TextEncoder().encode(JSON.stringify(json))),
  );
  const header = fc.option(fc.stringMatching(/^[\x20-\x7e]{0,40}$/), { nil: undefined });
  let number = 0;
  await fc.assert(
    fc.asyncProperty(
      bytes,
      signed,
      header,
      header,
      header,
      async (rawBody, isSigned, type, event, id) => {
        const headers = new Headers({
          'x-host-event': event ?? 'issues',
          'x-host-delivery': id ?? `d-${++number}`,
        });
        if (type !== undefined) headers.set('content-type', type);
        const signature = createHmac('sha256', isSigned ? 'secret' : 'guess')
          .update(rawBody)
          .digest('hex');
        headers.set('x-host-signature-256', `sha256=${signature}`);
        const outcome = await sync
          .verifyDelivery({ headers, rawBody })
          .catch((error: unknown) => error);
        if (outcome instanceof Error) {
          expect(outcome).toBeInstanceOf(AppError);
          const { reason } = outcome as AppError;
          expect(isSigned ? ['INVALID_JSON', 'INVALID_REQUEST'] : ['INVALID_SIGNATURE']).toContain(
            reason,
          );
        } else {
          expect(isSigned).toBe(true);
        }
      },
    ),
    { numRuns: 200 },
  );
});
