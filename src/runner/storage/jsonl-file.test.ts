import {
  appendFile,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import { type JsonlFile, type JsonlOptions, openJsonlFile } from './jsonl-file.ts';

let dir = '';
let path = '';
let reported: string[] = [];
const opened: JsonlFile[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'jsonl-'));
  path = join(dir, 'sub', 'a.jsonl');
  reported = [];
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((file) => file.close()));
  await rm(dir, { recursive: true, force: true });
});

async function open(options: Partial<JsonlOptions> = {}): Promise<JsonlFile> {
  const report = (event: string): unknown => reported.push(event);
  const file = await openJsonlFile({ path, report, ...options });
  opened.push(file);
  return file;
}

async function all<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of iterable) found.push(item);
  return found;
}

const numbered = (count: number): { i: number }[] =>
  Array.from({ length: count }, (_, i) => ({ i }));

test('the first record of a new file counts once the name of the file is on the disk', async () => {
  const file = await open();
  await rm(join(dir, 'sub'), { recursive: true });
  await expect(file.append({ i: 1 })).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  // Nor does a later one, as long as that fails.
  await expect(file.append({ i: 2 })).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
});

describe('reading', () => {
  test('gives what was appended, both ways, and keeps it to the owner', async () => {
    const file = await open();
    await Promise.all(numbered(100).map((record) => file.append(record)));
    expect(await all(file.oldestFirst())).toEqual(numbered(100));
    expect(await all(file.newestFirst())).toEqual(numbered(100).toReversed());
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(dir, 'sub'))).mode & 0o777).toBe(0o700);
  });

  test('text with newlines, lone surrogates and lines beyond a chunk survive', async () => {
    const file = await open();
    const records = [
      { t: 'a\nb\r\u2028' },
      { t: 'é'.repeat(200_000) },
      { t: '' },
      { t: '😀\ud800' },
    ];
    for (const record of records) await file.append(record);
    expect(await all(file.newestFirst())).toEqual(records.toReversed());
    expect(await all(file.oldestFirst())).toEqual(records);
  });

  test('lines that end where a chunk does stay apart', async () => {
    const file = await open();
    const empty = JSON.stringify({ t: '' }).length + 1;
    const records = [65_536, 65_536, 131_072, 65_535, 1_000, 262_144].map((length, i) => ({
      t: String(i).repeat(length - empty),
    }));
    for (const record of records) await file.append(record);
    expect(await all(file.newestFirst())).toEqual(records.toReversed());
    expect(await all(file.oldestFirst())).toEqual(records);
  });

  test('stops when the reader does', async () => {
    const file = await open();
    await Promise.all(numbered(1_000).map((record) => file.append(record)));
    for await (const record of file.newestFirst()) {
      expect(record).toEqual({ i: 999 });
      break;
    }
  });

  test('a line that is no JSON is reported and left out', async () => {
    const file = await open();
    await file.append({ i: 0 });
    await appendFile(path, 'not json\n');
    await file.close();
    const again = await open();
    await again.append({ i: 1 });
    expect(await all(again.newestFirst())).toEqual([{ i: 1 }, { i: 0 }]);
    expect(reported).toEqual(['jsonl.line_unreadable']);
  });
});

describe('opening', () => {
  test('cuts off what a crash tore and goes on after it', async () => {
    const file = await open();
    await file.append({ i: 0 });
    await file.close();
    await appendFile(path, '{"i":1');
    const again = await open();
    expect(reported).toEqual(['jsonl.line_torn']);
    await again.append({ i: 2 });
    expect(await readFile(path, 'utf8')).toBe('{"i":0}\n{"i":2}\n');
  });

  test('a file that holds nothing but a torn line becomes empty', async () => {
    await (await open()).close();
    await writeFile(path, 'x'.repeat(600_000));
    expect(await all((await open()).oldestFirst())).toEqual([]);
    expect((await stat(path)).size).toBe(0);
  });

  test('follows no symbolic link', async () => {
    await (await open()).close();
    await rm(path);
    await writeFile(join(dir, 'other'), 'kept');
    await symlink(join(dir, 'other'), path);
    await expect(open()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  });

  test('whatever the length it is cut to, whole records are a prefix and new ones follow', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ text: fc.string({ unit: anyCharacter, maxLength: 300, size: 'max' }) }),
          {
            minLength: 1,
            maxLength: 12,
            size: 'max',
          },
        ),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (records, part) => {
          await rm(path, { force: true });
          const file = await open();
          await Promise.all(records.map((record) => file.append(record)));
          await file.close();
          const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
          const size = (await stat(path)).size;
          const cut = Math.floor(part * size);
          await truncate(path, cut);
          let end = 0;
          const whole = lines.filter((line) => {
            end += Buffer.byteLength(line) + 1;
            return end <= cut;
          }).length;
          const again = await open();
          await again.append({ text: 'after' });
          const expected = [...records.slice(0, whole), { text: 'after' }];
          expect(await all(again.oldestFirst())).toEqual(expected);
          expect(await all(again.newestFirst())).toEqual(expected.toReversed());
          await again.close();
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('rotation', () => {
  test('keeps the newest files, in order, and nothing else', async () => {
    const file = await open({ rotateBytes: 200, keepFiles: 2 });
    for (const record of numbered(200)) await file.append(record);
    const found = (await all(file.oldestFirst())) as { i: number }[];
    const first = found[0]?.i ?? 0;
    expect(first).toBeGreaterThan(0);
    expect(found).toEqual(numbered(200).slice(first));
    expect(await all(file.newestFirst())).toEqual(found.toReversed());
    expect((await readdir(join(dir, 'sub'))).toSorted()).toEqual([
      'a.jsonl',
      'a.jsonl.1',
      'a.jsonl.2',
    ]);
    for (const name of ['a.jsonl', 'a.jsonl.1', 'a.jsonl.2']) {
      expect((await stat(join(dir, 'sub', name))).size).toBeLessThan(250);
    }
  });

  test('a crash between two renames hides nothing, and costs no file', async () => {
    const file = await open({ rotateBytes: 20, keepFiles: 4 });
    for (const record of numbered(8)) await file.append(record);
    await file.close();
    const before = await all((await open({ rotateBytes: 20, keepFiles: 4 })).oldestFirst());
    expect(before).toEqual(numbered(8));
    // As a rotation leaves it that got as far as the second file.
    await rename(`${path}.2`, `${path}.3`);
    const again = await open({ rotateBytes: 20, keepFiles: 4 });
    expect(await again.mayHaveDropped()).toBe(false);
    expect(await all(again.oldestFirst())).toEqual(numbered(8));
    for (const i of [8, 9, 10, 11, 12]) await again.append({ i });
    expect(await all(again.newestFirst())).toEqual(numbered(13).toReversed());
    expect(await again.mayHaveDropped()).toBe(true);
  });

  test('a reader sees each record once while the file is set aside under it', async () => {
    const file = await open({ rotateBytes: 40, keepFiles: 1_000 });
    for (const record of numbered(50)) await file.append(record);
    let isWriting = true;
    const writing = (async () => {
      for (let i = 50; i < 200; i++) await file.append({ i });
      isWriting = false;
    })();
    while (isWriting) {
      const found = (await all(file.newestFirst())) as { i: number }[];
      expect(found.length).toBeGreaterThanOrEqual(50);
      expect(found).toEqual(numbered(found.length).toReversed());
    }
    await writing;
    expect(reported).toEqual([]);
  });
});

test('after close nothing is accepted, and what was pending is there', async () => {
  const file = await open();
  const pending = numbered(50).map((record) => file.append(record));
  await file.close();
  await Promise.all(pending);
  await expect(file.append({ i: 50 })).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  expect(await all((await open()).oldestFirst())).toEqual(numbered(50));
});
