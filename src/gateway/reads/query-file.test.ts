import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QueryFile } from './query-file.ts';
import { QueryRecorder, type RecordedQuery } from './query-recorder.ts';

const question = (userId: string): RecordedQuery => ({
  projectId: 'p',
  tenantId: 't',
  namespace: 'doc',
  objectId: 'd',
  relation: 'viewer',
  userId,
  contextJson: '{"password":"hunter2"}',
});

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-questions-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const failures: unknown[] = [];
const fileOf = (path: string, bytesMax = 1 << 20): QueryFile =>
  new QueryFile({ path, bytesMax, every: 3, onFailed: (error) => failures.push(error) });
const linesOf = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('a file of questions', () => {
  test('holds what was asked and when, without context, for its owner alone', async () => {
    const path = join(folder, 'q.jsonl');
    const file = fileOf(path);
    const recorder = new QueryRecorder({ every: 1, bytesMax: 1 << 16, file });
    for (const user of ['a', 'b', 'a']) recorder.offer(() => question(user));
    await recorder.close();
    const [head, ...lines] = linesOf(path);
    expect(head).toEqual({ recorded: expect.any(String), every: 3 });
    // Each time that it is asked, other than in memory.
    expect(lines.map((line) => line['subject_user_id'])).toEqual(['a', 'b', 'a']);
    expect(lines[0]).toEqual({
      at_ms: expect.any(Number),
      project_id: 'p',
      tenant_id: 't',
      namespace: 'doc',
      object_id: 'd',
      relation: 'viewer',
      subject_user_id: 'a',
    });
    expect(readFileSync(path, 'utf8')).not.toContain('hunter2');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(file.counts).toEqual({ written: 3, dropped: 0 });
  });

  test('stays within its bytes, and keeps the newest', async () => {
    const path = join(folder, 'q.jsonl');
    const bytesMax = 20_000;
    for (let round = 0; round < 8; round++) {
      const file = fileOf(path, bytesMax);
      for (let i = 0; i < 40; i++) file.add(question(`r${round}u${i}`));
      await file.close();
      expect(statSync(path).size).toBeLessThanOrEqual(bytesMax / 2);
    }
    const both = statSync(path).size + statSync(`${path}.1`).size;
    expect(both).toBeLessThanOrEqual(bytesMax);
    expect(linesOf(path).at(-1)?.['subject_user_id']).toBe('r7u39');
    expect(existsSync(`${path}.2`)).toBe(false);
  });

  test('begins anew within one process once it is full', async () => {
    const path = join(folder, 'q.jsonl');
    const file = fileOf(path, 8_000);
    for (let part = 0; part < 6; part++) {
      for (let i = 0; i < 20; i++) file.add(question(`p${part}u${i}`));
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await file.close();
    expect(statSync(path).size).toBeLessThanOrEqual(4_000);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(4_000);
    expect(linesOf(path)[0]).toHaveProperty('recorded');
    expect(linesOf(path).at(-1)?.['subject_user_id']).toBe('p5u19');
  });

  test('leaves out what the disk is too slow for, and counts it', async () => {
    const file = fileOf(join(folder, 'q.jsonl'), 1 << 24);
    const long = 'u'.repeat(250);
    for (let i = 0; i < 4_000; i++) file.add(question(long));
    await file.close();
    const { written, dropped } = file.counts;
    expect(written + dropped).toBe(4_000);
    expect(dropped).toBeGreaterThan(0);
    expect(linesOf(join(folder, 'q.jsonl')).length).toBe(written + 1);
  });

  test('an error ends it, is told once, and fails no question', async () => {
    failures.length = 0;
    writeFileSync(join(folder, 'file'), '');
    const file = fileOf(join(folder, 'file', 'q.jsonl'));
    for (let i = 0; i < 3; i++) {
      file.add(question('a'));
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await file.close();
    expect(failures).toHaveLength(1);
    expect(file.counts).toEqual({ written: 0, dropped: 3 });
  });
});
