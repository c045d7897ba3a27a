import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import {
  appendFile,
  chmod,
  type FileHandle,
  mkdir,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import type { JournalRecord, RunStore } from '../model/storage.ts';
import { openRunStore } from './run-store.ts';

let dir = '';
let stateDir = '';
let reported: string[] = [];
const opened: RunStore[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'run-store-'));
  stateDir = join(dir, '.runner');
  reported = [];
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await rm(dir, { recursive: true, force: true });
});

async function open(diskFloorBytes = 0): Promise<RunStore> {
  const report = (event: string): unknown => reported.push(event);
  const store = await openRunStore({ stateDir, diskFloorBytes, report });
  opened.push(store);
  return store;
}

async function reopen(store: RunStore): Promise<RunStore> {
  await store.close();
  return open();
}

const at = '2026-01-02T03:04:05.678Z';
const record = (i: number): JournalRecord => ({ type: 'step', at, i });

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString('utf8');
}

describe('the state directory', () => {
  test('ignores itself in git, all but the vault, and is for its owner alone', async () => {
    await mkdir(stateDir, { mode: 0o755 });
    await chmod(stateDir, 0o755);
    const store = await open();
    await store.append('r1', record(0));
    store.openLog('r1', 'build', 1).close();
    await store.writeSummary('r1', 'build', 1, '# done');
    expect(await readFile(join(stateDir, '.gitignore'), 'utf8')).toBe(
      '*\n!vault.json\n!actions.lock\n',
    );
    const entries = await readdir(stateDir, { recursive: true, withFileTypes: true });
    expect(entries.length).toBeGreaterThan(8);
    for (const entry of entries) {
      const { mode } = await stat(join(entry.parentPath, entry.name));
      expect(mode & 0o777, entry.name).toBe(entry.isDirectory() ? 0o700 : 0o600);
    }
    expect((await stat(stateDir)).mode & 0o777).toBe(0o700);
  });

  test('may not be a link to somewhere else', async () => {
    await mkdir(join(dir, 'elsewhere'));
    await symlink(join(dir, 'elsewhere'), stateDir);
    await expect(open()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
    expect(await readdir(join(dir, 'elsewhere'))).toEqual([]);
  });

  test('belongs to one process at a time', async () => {
    const store = await open();
    await expect(open()).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      message: expect.stringContaining(`pid ${process.pid}`) as string,
    });
    await store.close();
    await open();
  });
});

describe('journals', () => {
  test('come back in order, oldest run first', async () => {
    let store = await open();
    await Promise.all(
      [3, 1, 2].flatMap((run) =>
        [0, 1, 2, 3].map((i) => store.append(`run-${run}`, record(run * 10 + i))),
      ),
    );
    store = await reopen(store);
    expect(await store.recover()).toEqual(
      [1, 2, 3].map((run) => ({
        runId: `run-${run}`,
        records: [0, 1, 2, 3].map((i) => record(run * 10 + i)),
      })),
    );
  });

  test('what was acknowledged is in the file by then', async () => {
    const store = await open();
    const path = join(stateDir, 'runs', 'r', 'journal.jsonl');
    for (let i = 0; i < 5; i++) {
      const sizes = [1, 2, 3].map(async () => {
        await store.append('r', { ...record(i), text: 'x'.repeat(1_000_000) });
        return statSync(path).size;
      });
      for (const size of await Promise.all(sizes))
        expect(size).toBeGreaterThan((i + 1) * 3_000_000);
    }
  });

  test('records that come together share one flush', async () => {
    const store = await open();
    await store.append('r', record(0));
    const handle = await openFile(join(dir, 'any'), 'w');
    const flushes = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync');
    try {
      await handle.close();
      await Promise.all(Array.from({ length: 100 }, (_, i) => store.append('r', record(i))));
      expect(flushes.mock.calls.length).toBeLessThanOrEqual(2);
      expect(flushes.mock.calls.length).toBeGreaterThanOrEqual(1);
    } finally {
      flushes.mockRestore();
    }
  });

  test('no file stays open after compaction, removal or close', async () => {
    const descriptors = (): number => readdirSync('/dev/fd').length;
    const before = descriptors();
    const store = await open();
    for (let i = 0; i < 10; i++) {
      await store.append(`run-${i}`, record(0));
      await store.compact(`run-${i}`, record(1));
      await store.append(`gone-${i}`, record(0));
      await store.remove(`gone-${i}`);
    }
    expect(descriptors()).toBeLessThan(before + 5);
    await store.append('run-0', record(2));
    await store.close();
    expect(descriptors()).toBe(before);
  });

  test('compaction leaves one record; what comes with it and after it follows in order', async () => {
    let store = await open();
    const calls = [
      store.append('r', record(0)),
      store.append('r', record(1)),
      store.compact('r', record(2)),
      store.append('r', record(3)),
    ];
    await Promise.all(calls);
    await store.append('r', record(4));
    store = await reopen(store);
    expect(await store.recover()).toEqual([
      { runId: 'r', records: [record(2), record(3), record(4)] },
    ]);
  });

  test('a removed run is gone, also when the removal was interrupted', async () => {
    let store = await open();
    await store.append('kept', record(0));
    await store.append('gone', record(1));
    const log = store.openLog('gone', 'build', 1);
    await log.write(['text']);
    log.close();
    await store.remove('gone');
    await store.remove('never-there');
    expect(await readdir(join(stateDir, 'runs'))).toEqual(['kept']);
    await mkdir(join(stateDir, 'runs', '.removed-00ff', 'logs'), { recursive: true });
    await writeFile(join(stateDir, 'runs', 'kept', '.journal.jsonl.tmp-00ff'), 'half');
    await mkdir(join(stateDir, 'runs', 'never-acknowledged'));
    store = await reopen(store);
    expect(await store.recover()).toEqual([{ runId: 'kept', records: [record(0)] }]);
    expect(await readdir(join(stateDir, 'runs'))).toEqual(['kept']);
    expect(await readdir(join(stateDir, 'runs', 'kept'))).toEqual(['journal.jsonl']);
  });

  test('a journal that cannot be read is left alone and reported', async () => {
    let store = await open();
    await store.append('bad', record(0));
    await store.append('half', record(1));
    await writeFile(join(stateDir, 'runs', 'bad', 'journal.jsonl'), 'no json\n{"type":"x"}\n');
    await appendFile(join(stateDir, 'runs', 'half', 'journal.jsonl'), '\0\0\0\n');
    store = await reopen(store);
    expect(await store.recover()).toEqual([{ runId: 'half', records: [record(1)] }]);
    expect(await readdir(join(stateDir, 'runs', 'bad'))).toEqual(['journal.jsonl']);
    expect(new Set(reported)).toEqual(new Set(['jsonl.line_unreadable']));
  });

  test('ids that would be paths are no runs', async () => {
    const store = await open();
    for (const id of ['..', '.', '', 'a/b', '/etc', '.removed-1', 'a\0b', 'x'.repeat(65)]) {
      await expect(store.append(id, record(0))).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
      expect(() => store.readSummary(id, 'j', 1)).toThrow('no such run');
    }
    expect(await readdir(join(stateDir, 'runs'))).toEqual([]);
  });

  test('cut anywhere, a prefix of whole records comes back and appending goes on', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: anyCharacter, maxLength: 200, size: 'max' }), {
          minLength: 1,
          maxLength: 10,
        }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.string({ maxLength: 30, size: 'max' }).map((text) => text.replaceAll('\n', ' ')),
        async (texts, part, garbage) => {
          await rm(stateDir, { recursive: true, force: true });
          const records = texts.map((text): JournalRecord => ({ type: 't', at, text }));
          let store = await open();
          await Promise.all(records.map((item) => store.append('r', item)));
          await store.close();
          const path = join(stateDir, 'runs', 'r', 'journal.jsonl');
          const bytes = await readFile(path);
          const cut = Math.floor(part * bytes.length);
          await truncate(path, cut);
          await appendFile(path, garbage);
          const whole = bytes.subarray(0, cut).filter((byte) => byte === 10).length;
          store = await open();
          const found = await store.recover();
          const expected = records.slice(0, whole);
          expect(found).toEqual(whole === 0 ? [] : [{ runId: 'r', records: expected }]);
          await store.append('r', record(1));
          store = await reopen(store);
          expect((await store.recover())[0]?.records).toEqual([...expected, record(1)]);
          await store.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  test('500 finished runs are read at once', async () => {
    let store = await open();
    await mkdir(join(stateDir, 'runs'), { recursive: true });
    const ids = Array.from({ length: 500 }, (_, i) => `run-${String(i).padStart(4, '0')}`);
    for (const id of ids) {
      await mkdir(join(stateDir, 'runs', id));
      const text = JSON.stringify({ type: 'finished', at, text: 'x'.repeat(4_000) });
      await writeFile(join(stateDir, 'runs', id, 'journal.jsonl'), `${text}\n`);
    }
    store = await reopen(store);
    expect((await store.recover()).map(({ runId }) => runId)).toEqual(ids);
    expect(reported).toEqual([]);
  });
});

describe('logs', () => {
  test('are found by job and step, whatever the job is called', async () => {
    const store = await open();
    const jobs = [
      'build',
      'build:2',
      'a/b',
      'a_b',
      'A_B',
      '../../x',
      'é'.repeat(200),
      'a:b',
      '.',
      '',
    ];
    for (const job of jobs) {
      for (const step of [1, 2]) {
        const log = store.openLog('r', job, step);
        await log.write([`${job} ${step}`]);
        log.close();
      }
    }
    for (const job of jobs) {
      for (const step of [1, 2])
        expect(await textOf(store.readLog('r', job, step))).toBe(`${job} ${step}\n`);
    }
    expect(await readdir(dir)).toEqual(['.runner']);
    expect(await readdir(join(stateDir, 'runs', 'r', 'logs'))).toHaveLength(jobs.length);
    expect(await textOf(store.readLog('r', 'other', 1))).toBe('');
  });

  test('lines can be read as soon as write returned; a new log replaces the old one', async () => {
    const store = await open();
    const log = store.openLog('r', 'j', 1);
    await log.write([]);
    await log.write(['ü', '', 'b']);
    expect(await textOf(store.readLog('r', 'j', 1))).toBe('ü\n\nb\n');
    log.close();
    log.close();
    expect(() => log.write(['late'])).toThrow('closed');
    store.openLog('r', 'j', 1).close();
    expect(await textOf(store.readLog('r', 'j', 1))).toBe('');
  });

  test('the tail is the last lines, at any size', async () => {
    const store = await open();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.nat(40), fc.constantFrom(65_535, 262_143, 262_144, 300_000)), {
          maxLength: 8,
        }),
        fc.nat(10),
        async (lengths, tail) => {
          const lines = lengths.map((length, i) => String(i).repeat(length).slice(0, length));
          const log = store.openLog('r', 'j', 1);
          await log.write(lines);
          log.close();
          const last = tail === 0 ? [] : lines.slice(-tail);
          expect(await textOf(store.readLog('r', 'j', 1, tail))).toBe(
            last.map((line) => `${line}\n`).join(''),
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a writer that is ahead of the disk is asked to pause, and the pause ends', async () => {
    const store = await open();
    const log = store.openLog('r', 'j', 1);
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    let pause: Promise<void> | undefined;
    let batches = 0;
    // Without awaiting anything no flush can end.
    while (pause === undefined && batches < 100) {
      pause = log.write(lines);
      batches++;
    }
    expect(pause).toBeInstanceOf(Promise);
    await pause;
    log.close();
    let bytes = 0;
    for await (const chunk of store.readLog('r', 'j', 1)) bytes += chunk.length;
    expect(bytes).toBe(batches * 1_001_000);
  });
});

test('summaries are kept by job and step, up to a limit', async () => {
  const store = await open();
  await store.writeSummary('r', 'a/b', 3, '# ü');
  await store.writeSummary('r', 'a/b', 3, '# two');
  expect(store.readSummary('r', 'a/b', 3)).toBe('# two');
  expect(store.readSummary('r', 'a/b', 4)).toBe('');
  await expect(store.writeSummary('r', 'j', 1, 'x'.repeat(5 << 20))).rejects.toMatchObject({
    reason: 'RESULT_TOO_LARGE',
  });
});

test('a disk below its floor is said to be full', async () => {
  await (await open(1)).assertDiskSpace();
  await opened.pop()?.close();
  const store = await open(Number.MAX_SAFE_INTEGER);
  await expect(store.assertDiskSpace()).rejects.toMatchObject({ reason: 'DISK_FULL' });
  await expect(store.assertDiskSpace()).rejects.toMatchObject({ reason: 'DISK_FULL' });
});

describe('kill -9', () => {
  const source = `
    import { openRunStore } from ${JSON.stringify(new URL('run-store.ts', import.meta.url).href)};
    import { writeSync } from 'node:fs';
    const store = await openRunStore({ stateDir: process.argv[1], diskFloorBytes: 0, report() {} });
    const say = (text) => writeSync(1, text + '\\n');
    const log = store.openLog('run-0', 'job', 1);
    const writer = async (run) => {
      for (let i = 0; ; i++) {
        await store.append('run-' + run, { type: 'r', at: 'x', i, text: 'y'.repeat(i % 3000) });
        say('ack ' + run + ' ' + i);
        const lines = Array.from({ length: 20 }, (_, n) => 'line ' + (i * 20 + n));
        if (run === 0) { await log.write(lines); say('log ' + (i + 1) * 20); }
        if (run === 1 && i % 10 === 9) {
          await store.compact('run-1', { type: 'c', at: 'x', i });
          say('compact ' + i);
        }
      }
    };
    await Promise.all([0, 1, 2].map(writer));
  `;

  test.each([1, 40, 150, 333])(
    'after %i lines of output nothing that was said is lost',
    async (lineCount) => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', source, stateDir], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      child.stdout.setEncoding('utf8');
      child.stdout.on('data', (text: string) => {
        said += text;
        if (said.split('\n').length > lineCount) child.kill('SIGKILL');
      });
      const [, signal] = (await once(child, 'close')) as [number | null, string | null];
      expect(signal).toBe('SIGKILL');
      const lines = said.split('\n').slice(0, -1);
      const highest = (prefix: string): number =>
        Math.max(
          -1,
          ...lines
            .filter((line) => line.startsWith(prefix))
            .map((line) => Number(line.slice(prefix.length))),
        );

      // The lock went with the process.
      const store = await open();
      const found = new Map((await store.recover()).map(({ runId, records }) => [runId, records]));
      for (const run of [0, 1, 2]) {
        const records = found.get(`run-${run}`) ?? [];
        const numbers = records.map((item) => item['i'] as number);
        const acknowledged = highest(`ack ${run} `);
        if (acknowledged >= 0) expect(numbers.at(-1)).toBeGreaterThanOrEqual(acknowledged);
        // Without gaps from the first record, or from the last compaction on.
        const first = numbers[0] ?? 0;
        expect(numbers).toEqual(numbers.map((_, i) => first + i));
        expect(first === 0 || records[0]?.type === 'c').toBe(true);
        if (run === 1) expect(first).toBeGreaterThanOrEqual(Math.max(0, highest('compact ')));
      }
      const text = await textOf(store.readLog('run-0', 'job', 1));
      const announced = Math.max(0, highest('log '));
      const wanted = Array.from({ length: announced }, (_, n) => `line ${n}`);
      expect(text.split('\n').slice(0, announced)).toEqual(wanted);
    },
  );
});
