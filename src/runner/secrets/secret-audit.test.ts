import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Clock } from '../../shared/time/clock.ts';
import { SecretAudit, type SecretAuditEvent } from './secret-audit.ts';

let dir: string;
let path: string;
let nowMs: number;
let reports: string[];
const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'audit-'));
  path = join(dir, 'secrets-audit.jsonl');
  nowMs = Date.parse('2026-11-21T12:00:00Z');
  reports = [];
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function opened(rotateBytes?: number): Promise<SecretAudit> {
  const report = (name: string, error: Error): unknown => reports.push(`${name}: ${error.message}`);
  const audit = await SecretAudit.open(dir, clock, report, rotateBytes);
  await audit.verified;
  return audit;
}

function event(name: string): SecretAuditEvent {
  return { action: 'set', name, environment: 'production', backend: 'local', result: 'created' };
}

async function withRecords(count: number): Promise<readonly string[]> {
  const audit = await opened();
  for (let index = 0; index < count; index++) await audit.append([event(`N${index}`)]);
  await audit.close();
  return (await readFile(path, 'utf8')).trimEnd().split('\n');
}

test('chains what many append at once, over restarts', async () => {
  const audit = await opened();
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      audit.append([event(`A${index}`), event(`B${index}`)]),
    ),
  );
  await audit.close();
  const again = await opened();
  await again.append([event('LAST')]);
  const records = await again.query({ limit: 100 });
  await again.close();
  expect(records.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 41 }, (_, index) => 41 - index),
  );
  for (const [index, record] of records.entries()) {
    expect(record.prevHash).toBe(records[index + 1]?.hash ?? '0'.repeat(64));
  }
  await (await opened()).close();
  expect(reports).toEqual([]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test.each([
  ['changed', (lines: readonly string[]) => lines.with(1, (lines[1] ?? '').replace('N1', 'N9'))],
  ['dropped', (lines: readonly string[]) => lines.toSpliced(1, 1)],
  ['dropped at the start', (lines: readonly string[]) => lines.slice(1)],
  ['repeated', (lines: readonly string[]) => lines.toSpliced(1, 0, lines[1] ?? '')],
  ['swapped', (lines: readonly string[]) => lines.toSpliced(0, 2, lines[1] ?? '', lines[0] ?? '')],
  ['of another form', (lines: readonly string[]) => lines.with(1, '{}')],
])('reports a line that is %s, and goes on', async (_case, change) => {
  const lines = await withRecords(4);
  await writeFile(path, `${change(lines).join('\n')}\n`);
  const audit = await opened();
  expect(reports).toHaveLength(1);
  expect(reports[0]).toMatch(/^secrets\.audit_broken: the audit of secrets was changed/);
  await audit.append([event('NEXT')]);
  const [newest] = await audit.query({ limit: 1 });
  expect(newest?.name).toBe('NEXT');
  expect(newest?.prevHash).toBe((JSON.parse(lines[3] ?? '{}') as { hash: string }).hash);
  await audit.close();
});

test('reports a record that was written anew, with a hash of its own', async () => {
  const lines = await withRecords(3);
  const { hash: _hash, ...content } = JSON.parse(lines[1] ?? '{}') as Record<string, unknown>;
  const forged = { ...content, name: 'FORGED' };
  const hash = createHash('sha256').update(JSON.stringify(forged)).digest('hex');
  await writeFile(path, `${lines.with(1, JSON.stringify({ ...forged, hash })).join('\n')}\n`);
  await (await opened()).close();
  expect(reports).toEqual([expect.stringContaining('record 3 does not follow number 2')]);
});

test('a line that a crash tore is cut off, and the chain is whole', async () => {
  const lines = await withRecords(3);
  await writeFile(path, `${lines.join('\n')}\n${lines[2]?.slice(0, 40)}`);
  const audit = await opened();
  await audit.append([event('NEXT')]);
  await audit.close();
  reports.length = 0;
  await (await opened()).close();
  expect(reports).toEqual([]);
});

test('answers by limit, time and name, newest first', async () => {
  const audit = await opened();
  for (const name of ['A', 'B', 'A', 'C']) {
    await audit.append([event(name)]);
    nowMs += 1000;
  }
  const names = async (query: Parameters<SecretAudit['query']>[0]): Promise<string[]> =>
    (await audit.query(query)).map((record) => `${record.seq}${record.name}`);
  expect(await names({})).toEqual(['4C', '3A', '2B', '1A']);
  expect(await names({ limit: 2 })).toEqual(['4C', '3A']);
  expect(await names({ name: 'a' })).toEqual(['3A', '1A']);
  expect(await names({ since: '2026-11-21T12:00:02Z' })).toEqual(['4C', '3A']);
  for (const [field, query] of [
    ['limit', { limit: 0 }],
    ['limit', { limit: 1001 }],
    ['limit', { limit: 1.5 }],
    ['since', { since: 'yesterday' }],
  ] as const) {
    await expect(audit.query(query)).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      metadata: { field },
    });
  }
  await audit.close();
});

/** A file takes two records. */
const ROTATE_BYTES = 500;

test('sets files aside and removes the oldest; what is left is a whole chain, over restarts', async () => {
  for (let index = 0; index < 40; index++) {
    const audit = await opened(ROTATE_BYTES);
    await audit.append([event(`N${index}`)]);
    await audit.close();
  }
  expect(reports).toEqual([]);
  const names = (await readdir(dir)).toSorted();
  expect(names).toHaveLength(8);
  expect(names.at(-1)).toBe('secrets-audit.jsonl.7');
  const audit = await opened(ROTATE_BYTES);
  const records = await audit.query({ limit: 100 });
  await audit.close();
  expect(records.length).toBeGreaterThanOrEqual(14);
  expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => 40 - index));
  expect(reports).toEqual([]);
});

test('a line that is dropped from a file that was set aside is reported', async () => {
  const audit = await opened(ROTATE_BYTES);
  for (let index = 0; index < 40; index++) await audit.append([event(`N${index}`)]);
  await audit.close();
  const lines = (await readFile(`${path}.3`, 'utf8')).split('\n');
  await writeFile(`${path}.3`, lines.slice(1).join('\n'));
  await (await opened(ROTATE_BYTES)).close();
  expect(reports).toEqual([expect.stringMatching(/^secrets\.audit_broken: .* does not follow/)]);
});

test('before anything was removed, a chain without its start is reported', async () => {
  const audit = await opened(ROTATE_BYTES);
  for (let index = 0; index < 8; index++) await audit.append([event(`N${index}`)]);
  await audit.close();
  const oldest = (await readdir(dir)).toSorted().at(-1) ?? '';
  await rm(join(dir, oldest));
  await (await opened(ROTATE_BYTES)).close();
  expect(reports).toEqual([expect.stringMatching(/^secrets\.audit_broken: .* does not follow/)]);
});
