import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { strToU8, zipSync, type Zippable } from 'fflate';
import { describe, expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../../../test/support/job-harness.ts';
import { createArtifactStore } from './artifact-store.ts';
import { EXTRACT_LIMITS, extractZip } from './extract-zip.ts';
import { openRegular, streamOf } from './write-zip.ts';

const RUN = 'run1';

function reasonOf(reason: string): unknown {
  return expect.objectContaining({ reason });
}

function sourcesIn(
  dir: string,
  files: Readonly<Record<string, string>>,
): { source: string; entry: string }[] {
  writeFiles(dir, files);
  return Object.keys(files).map((entry) => ({ source: join(dir, entry), entry }));
}

describe('artifacts', () => {
  test('several files are a zip, one is itself; both come back as they were', async () => {
    const dir = temporaryDir();
    const store = await createArtifactStore(join(dir, 'runs'));
    const files = { 'a.txt': 'a'.repeat(100_000), 'deep/er/ü.txt': 'ü', empty: '' };
    const zip = await store.add({
      runId: RUN,
      name: 'all',
      files: sourcesIn(join(dir, 'in'), files),
      isOverwriting: false,
    });
    const [one] = sourcesIn(join(dir, 'in'), { 'one.json': '{}' });
    if (one === undefined) throw new Error('no file');
    const single = await store.add({ runId: RUN, name: 'one', files: [one], isOverwriting: false });
    expect(zip).toMatchObject({ name: 'all', mimeType: 'application/zip', runId: RUN });
    expect(single).toMatchObject({ mimeType: 'application/json', size: 2 });
    for (const artifact of [zip, single]) {
      const bytes = readFileSync(artifact.path);
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(artifact.sha256);
      expect(bytes.length).toBe(artifact.size);
      await store.extract(artifact, join(dir, 'out'));
    }
    for (const [name, text] of Object.entries({ ...files, 'one.json': '{}' })) {
      expect(readFileSync(join(dir, 'out', name), 'utf8')).toBe(text);
    }
  });

  test('are found again by the next store, in order of names, and go with their run', async () => {
    const dir = temporaryDir();
    const runs = join(dir, 'runs');
    const first = await createArtifactStore(runs);
    for (const name of ['b', 'a']) {
      const files = sourcesIn(join(dir, 'in'), { x: name });
      await first.add({ runId: RUN, name, files, isOverwriting: false });
    }
    writeFileSync(join(runs, RUN, 'artifacts', 'broken.json'), '{');
    writeFileSync(join(runs, RUN, 'artifacts', 'torn.zip.tmp'), 'x');
    const second = await createArtifactStore(runs);
    expect(second.list(RUN).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(second.list(RUN)).toEqual(first.list(RUN));
    expect(readdirSync(join(runs, RUN, 'artifacts')).some((name) => name.endsWith('.tmp'))).toBe(
      false,
    );
    await second.removeRun(RUN);
    expect(second.list(RUN)).toEqual([]);
    expect(existsSync(join(runs, RUN, 'artifacts'))).toBe(false);
    expect(second.list('other')).toEqual([]);
  });

  test('one file that is no archive has its own name; what earlier stores wrote stays as it was', async () => {
    const dir = temporaryDir();
    const runs = join(dir, 'runs');
    const store = await createArtifactStore(runs);
    mkdirSync(join(dir, 'in'));
    const source = join(dir, 'in', 'x.ZIP');
    writeFileSync(source, zipSync({ inner: strToU8('i') }));
    const add = (
      name: string,
      entry: string,
      isUnarchived?: boolean,
    ): ReturnType<typeof store.add> =>
      store.add({
        runId: RUN,
        name,
        files: [{ source, entry }],
        isOverwriting: false,
        isUnarchived,
      });
    await expect(add('given', 'x.ZIP', true)).rejects.toEqual(reasonOf('INVALID_VALUE'));
    const own = await add('x.ZIP', 'x.ZIP', true);
    const old = await add('old', 'x.ZIP');
    expect(own).toMatchObject({ name: 'x.ZIP', mimeType: 'application/zip' });
    const index = join(runs, RUN, 'artifacts', `${old.id}.json`);
    const { isUnarchived, ...before } = JSON.parse(readFileSync(index, 'utf8')) as {
      isUnarchived: boolean;
    };
    expect(isUnarchived).toBe(false);
    writeFileSync(index, JSON.stringify(before));
    const next = await createArtifactStore(runs);
    for (const [artifact, name, isPacked] of [
      [own, 'inner', false],
      [own, 'x.ZIP', true],
      [old, 'x.ZIP', false],
      [old, 'old.zip', true],
    ] as const) {
      const target = join(dir, `${artifact.name}-${isPacked}`);
      expect(await next.extract(artifact, target, { isPacked })).toBe(true);
      expect(readdirSync(target)).toEqual([name]);
    }
    await extractZip(join(dir, 'old-true', 'old.zip'), join(dir, 'again'));
    expect(readFileSync(join(dir, 'again', 'x.ZIP'))).toEqual(readFileSync(source));
  });

  test('a file that grows while it is stored is what was read of it', async () => {
    const dir = temporaryDir();
    const [file] = sourcesIn(dir, { log: 'x'.repeat(400_000) });
    if (file === undefined) throw new Error('no file');
    const store = await createArtifactStore(join(dir, 'runs'));
    let isOver = false;
    const growing = (async () => {
      while (!isOver) await appendFile(file.source, 'y'.repeat(10_000));
    })();
    const request = { runId: RUN, name: 'log', files: [file], isOverwriting: false };
    const artifact = await store.add({ ...request, isUnarchived: true });
    isOver = true;
    await growing;
    const stored = readFileSync(artifact.path);
    expect(stored.length).toBe(artifact.size);
    expect(createHash('sha256').update(stored).digest('hex')).toBe(artifact.sha256);
    expect(await store.extract(artifact, join(dir, 'out'))).toBe(true);
    expect(readFileSync(join(dir, 'out', 'log'))).toEqual(stored);
  });

  test('a file that is written on to is read as far as it went when it was opened', async () => {
    const dir = temporaryDir();
    const [file, empty] = sourcesIn(dir, { log: 'x'.repeat(100), empty: '' });
    const kernel = { source: '/proc/self/comm', entry: 'comm' };
    for (const [source, wanted] of [
      [file, 'x'.repeat(100)],
      [empty, ''],
      ...(existsSync(kernel.source)
        ? [[kernel, readFileSync(kernel.source, 'utf8')] as const]
        : []),
    ] as const) {
      if (source === undefined) throw new Error('no file');
      const stream = await streamOf(await openRegular(source));
      if (source === file) appendFileSync(file.source, 'more');
      expect((await buffer(stream)).toString()).toBe(wanted);
    }
  });

  test('are immutable, unless overwritten', async () => {
    const dir = temporaryDir();
    const store = await createArtifactStore(join(dir, 'runs'));
    const add = (text: string, isOverwriting: boolean): ReturnType<typeof store.add> =>
      store.add({
        runId: RUN,
        name: 'n',
        files: sourcesIn(join(dir, text), { x: text }),
        isOverwriting,
      });
    const results = await Promise.allSettled([add('1', false), add('2', false)]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await expect(add('3', false)).rejects.toEqual(reasonOf('DUPLICATE_ARTIFACT'));
    const files = sourcesIn(join(dir, 'again'), { x: 'again' });
    const again = { runId: RUN, name: 'n', files, isOverwriting: false, attempt: 2 };
    expect(await store.add(again)).toMatchObject({ name: 'n', size: 5 });
    await expect(store.add(again)).rejects.toEqual(reasonOf('DUPLICATE_ARTIFACT'));
    const before = store.find(RUN, 'n');
    const after = await add('4', true);
    expect(readFileSync(after.path, 'utf8')).toBe('4');
    expect(existsSync(before?.path ?? '')).toBe(false);
    if (before === undefined) throw new Error('not found');
    await expect(store.extract(before, join(dir, 'out'))).rejects.toEqual(
      reasonOf('ARTIFACT_NOT_FOUND'),
    );
    expect(readdirSync(join(dir, 'runs', RUN, 'artifacts'))).toHaveLength(2);
  });

  test.each([
    '',
    ' ',
    '.',
    '..',
    'a/b',
    'a\\b',
    'a:b',
    'a"b',
    'a<b',
    'a|b',
    'a*b',
    'a?b',
    'a\nb',
    'nul',
    'con.txt',
    'a\u0000',
    'x'.repeat(256),
  ])('the name %j is refused', async (name) => {
    const dir = temporaryDir();
    const store = await createArtifactStore(join(dir, 'runs'));
    const files = sourcesIn(dir, { x: '' });
    await expect(store.add({ runId: RUN, name, files, isOverwriting: false })).rejects.toEqual(
      reasonOf('INVALID_NAME'),
    );
  });

  test('entries that leave the artifact, run ids that are paths, and links are refused', async () => {
    const dir = temporaryDir();
    const store = await createArtifactStore(join(dir, 'runs'));
    writeFiles(dir, { secret: 's' });
    symlinkSync(join(dir, 'secret'), join(dir, 'link'));
    const add = (runId: string, source: string, entry: string): Promise<unknown> =>
      store.add({
        runId,
        name: 'n',
        files: [
          { source: join(dir, source), entry },
          { source: join(dir, 'secret'), entry: 'ok' },
        ],
        isOverwriting: false,
      });
    for (const entry of ['../x', '/x', 'a/../../x', 'a//b', 'a\\b', '']) {
      await expect(add(RUN, 'secret', entry)).rejects.toEqual(reasonOf('INVALID_NAME'));
    }
    await expect(add('../run', 'secret', 'x')).rejects.toEqual(reasonOf('INVALID_VALUE'));
    await expect(add(RUN, 'link', 'x')).rejects.toEqual(reasonOf('STORE_UNAVAILABLE'));
    await expect(add(RUN, '.', 'x')).rejects.toEqual(reasonOf('INVALID_VALUE'));
    // Nothing is left of what failed.
    expect(readdirSync(join(dir, 'runs', RUN, 'artifacts'))).toEqual([]);
    expect(store.list(RUN)).toEqual([]);
  });

  test('too large, changed on disk, and very compressible', async () => {
    const dir = temporaryDir();
    const small = await createArtifactStore(join(dir, 'small'), { bytesMax: 1_000 });
    const store = await createArtifactStore(join(dir, 'runs'));
    const zeros = sourcesIn(dir, { zeros: '0'.repeat(4_000_000), other: 'x' });
    await expect(
      small.add({ runId: RUN, name: 'n', files: zeros, isOverwriting: false }),
    ).rejects.toEqual(reasonOf('RESULT_TOO_LARGE'));
    const artifact = await store.add({ runId: RUN, name: 'n', files: zeros, isOverwriting: false });
    expect(artifact.size).toBeLessThan(40_000);
    await store.extract(artifact, join(dir, 'out'));
    expect(statSync(join(dir, 'out', 'zeros')).size).toBe(4_000_000);
    writeFileSync(artifact.path, zipSync({ evil: strToU8('x') }));
    await expect(store.extract(artifact, join(dir, 'out2'))).rejects.toEqual(
      reasonOf('INVALID_VALUE'),
    );
    expect(existsSync(join(dir, 'out2', 'evil'))).toBe(false);
  });
});

describe('unpacking what others made', () => {
  async function unpack(files: Zippable, limits = EXTRACT_LIMITS): Promise<string> {
    const dir = temporaryDir();
    writeFileSync(join(dir, 'x.zip'), zipSync(files));
    mkdirSync(join(dir, 'out'));
    await extractZip(join(dir, 'x.zip'), join(dir, 'out'), limits);
    return join(dir, 'out');
  }

  test.each([
    '../evil',
    'a/../../evil',
    '/evil',
    'a/b/../../../evil',
    'C:/evil',
    '..\\evil',
    'a/./b',
  ])('the entry %j is refused', async (name) => {
    await expect(unpack({ [name]: strToU8('x') })).rejects.toThrow(/cannot/);
  });

  test('links, devices and encrypted entries are refused', async () => {
    const entry = (mode: number): Zippable => ({
      x: [strToU8('/etc/passwd'), { os: 3, attrs: mode << 16 }],
    });
    await expect(unpack(entry(0o120777))).rejects.toEqual(reasonOf('INVALID_VALUE'));
    await expect(unpack(entry(0o020666))).rejects.toEqual(reasonOf('INVALID_VALUE'));
    await expect(unpack(entry(0o100644))).resolves.toBeTypeOf('string');
  });

  test('nothing is written through links that lie in the folder', async () => {
    const dir = temporaryDir();
    const outside = join(dir, 'outside');
    writeFiles(dir, { 'outside/file': 'kept', 'out/x': '' });
    symlinkSync(outside, join(dir, 'out', 'folder'));
    symlinkSync(join(outside, 'file'), join(dir, 'out', 'file'));
    const zip = join(dir, 'x.zip');
    writeFileSync(zip, zipSync({ 'folder/file': strToU8('evil') }));
    await expect(extractZip(zip, join(dir, 'out'))).rejects.toEqual(reasonOf('INVALID_VALUE'));
    writeFileSync(zip, zipSync({ file: strToU8('new') }));
    await extractZip(zip, join(dir, 'out'));
    expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('kept');
    expect(readFileSync(join(dir, 'out', 'file'), 'utf8')).toBe('new');
  });

  test('bombs: too many entries, too many bytes, too high a ratio, false sizes', async () => {
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, strToU8('x')]));
    await expect(unpack(many, { ...EXTRACT_LIMITS, entriesMax: 10 })).rejects.toEqual(
      reasonOf('RESULT_TOO_LARGE'),
    );
    await expect(unpack(many, { ...EXTRACT_LIMITS, bytesMax: 10 })).rejects.toEqual(
      reasonOf('RESULT_TOO_LARGE'),
    );
    const zeros = new Uint8Array(1_000_000);
    await expect(unpack({ zeros })).rejects.toEqual(reasonOf('RESULT_TOO_LARGE'));
    // The central directory says that the file has 10 bytes.
    const dir = temporaryDir();
    const bytes = Buffer.from(zipSync({ zeros }));
    const directory = bytes.lastIndexOf(Buffer.from('PK\u0001\u0002', 'latin1'));
    bytes.writeUInt32LE(10, directory + 24);
    writeFileSync(join(dir, 'x.zip'), bytes);
    await expect(extractZip(join(dir, 'x.zip'), join(dir, 'out'))).rejects.toBeInstanceOf(Error);
    expect(statSync(join(dir, 'out', 'zeros')).size).toBeLessThanOrEqual(10);
  });

  test('a file that is no archive', async () => {
    const dir = temporaryDir();
    writeFiles(dir, { 'x.zip': 'not a zip at all, whatever its name says' });
    await expect(extractZip(join(dir, 'x.zip'), join(dir, 'out'))).rejects.toEqual(
      reasonOf('INVALID_VALUE'),
    );
  });
});
