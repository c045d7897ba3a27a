import { createHmac } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startProcess } from '../support/runner-process.ts';
import { byLength } from '../support/test-length.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

/* Deliveries of webhooks that are much work to read, by those who know the secret and those who do not. */
const SECRET = 'a secret of the code host';
const MIB = 1_048_576;
/** With room for what makes each delivery another one. */
const RAW_MAX = 25 * MIB - 1_024;
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const commit = JSON.stringify({
  id: 'a'.repeat(40),
  message: `Mend "the" thing\n${'Why it was so. '.repeat(20)}`,
  author: { name: 'a', email: 'a@b', username: 'a' },
  committer: { name: 'a', email: 'a@b', username: 'a' },
  added: Array.from({ length: 10 }, (_, i) => `packages/some/src/added-${i}.ts`),
  modified: Array.from({ length: 10 }, (_, i) => `packages/some/src/modified-${i}.ts`),
});
const PUSH = `{"ref":"refs/heads/main","commits":[${`${commit},`.repeat(2_047)}${commit}]}`;
const filled = (piece: string, bytes: number): string =>
  `{"a":[${piece.repeat(bytes / piece.length - 2)}0]}`;
const names = (count: number): string =>
  Array.from({ length: count }, (_, i) => `"n${i}":0`).join();

type Delivery = readonly [name: string, body: string, type: string, status: number];
/** One that is read, one of each kind that is refused. */
const SOME: readonly Delivery[] = [
  ['a push of 2,048 commits with 40,960 names of files', PUSH, JSON_TYPE, 202],
  ['a push as a form', `payload=${encodeURIComponent(PUSH)}`, FORM_TYPE, 202],
  ['300,000 names', `{${names(300_000)}}`, JSON_TYPE, 413],
  ['8 million levels', '['.repeat(8 * MIB - 100), JSON_TYPE, 400],
  ['a form of 4 million fields', 'a&'.repeat(4 * MIB), FORM_TYPE, 400],
];
const MORE = (): readonly Delivery[] => [
  ['8 MB of one text', `{"a":"${'é'.repeat(4 * MIB - 100)}"}`, JSON_TYPE, 202],
  ['8,000 names', `{${names(8_000)}}`, JSON_TYPE, 202],
  ['25 MB of empty objects', filled('{},', RAW_MAX), JSON_TYPE, 413],
  ['8 MB of empty objects', filled('{},', 8 * MIB - 100), JSON_TYPE, 413],
  ['a number of 8 million digits', `{"a":${'1'.repeat(8 * MIB - 100)}}`, JSON_TYPE, 400],
  ['a form of 25 MB of escapes', `payload=${'%5b'.repeat(RAW_MAX / 3 - 8)}`, FORM_TYPE, 413],
  ['a form of 12 million fields', 'a&'.repeat(RAW_MAX / 2), FORM_TYPE, 400],
];

test('deliveries stall nobody, known or not', { timeout: 900_000 }, async () => {
  const workspace = mkdtempSync(join(tmpdir(), 'gatehouse-inbox-'));
  const { child, url } = await startProcess(workspace, { RUNNER_WEBHOOK_SECRET: SECRET });
  const pid = child.pid ?? -1;
  let number = 0;
  const send = async (text: string, type: string, secret: string): Promise<number> => {
    number += 1;
    const body = type === FORM_TYPE ? `${text}&n=${number}` : text + ' '.repeat(number);
    const response = await fetch(`${url}/api/sync/inbox`, {
      method: 'POST',
      headers: {
        'content-type': type,
        'x-github-event': 'push',
        'x-github-delivery': `delivery-${number}`,
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };
  for (const [name, body, type, status] of byLength(SOME, [...SOME, ...MORE()])) {
    for (const [secret, expected] of [
      [SECRET, status],
      ['a guess', 401],
    ] as const) {
      const statuses: number[] = [];
      const toll = await tollOf({ pid, healthUrl: `${url}/health` }, async () => {
        await Promise.all([1, 2].map(async () => statuses.push(await send(body, type, secret))));
      });
      printToll(`deliveries: ${name}, ${secret === SECRET ? 'signed' : 'not signed'}`, toll);
      expect(statuses, name).toEqual([expected, expected]);
      expect(toll.stallMs, name).toBeLessThan(STALL_MS_MAX);
    }
  }
});
