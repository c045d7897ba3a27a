import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, type TestContext, test, vi } from 'vitest';
import { secretListOption } from './option.ts';
import { secretFileOf, SecretFileWatch } from './secret-file-watch.ts';

const root = mkdtempSync(join(tmpdir(), 'secret-watch-'));
afterAll(() => rmSync(root, { recursive: true }));
const TABLE = { tokens: secretListOption({ env: 'X_TOKENS', description: '' }) };
let count = 0;

/** A file of one test, and what was told of it once it is followed. */
class Followed {
  readonly path = join(root, `tokens-${count++}`);
  readonly changes: (readonly string[])[] = [];
  readonly problems: (string | null)[] = [];
  watch = new SecretFileWatch([]);

  constructor(text = 'one,two\n') {
    writeFileSync(this.path, text);
  }

  follow(values: readonly string[], onFinished: TestContext['onTestFinished']): void {
    const file = secretFileOf(TABLE, 'tokens', { X_TOKENS_FILE: this.path });
    if (file === undefined) throw new Error('the file is named');
    this.watch = new SecretFileWatch([
      {
        ...file,
        values,
        onChanged: (changed) => void this.changes.push(changed),
        onProblem: (problem) => void this.problems.push(problem),
      },
    ]);
    onFinished(() => this.watch.stop());
    this.watch.start();
  }
}

const seen = async (what: () => void): Promise<void> => vi.waitFor(what, { timeout: 10_000 });
/** Long enough for several looks. */
const someLooks = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 500));

test('a setting that stands in no file is not followed', () => {
  new SecretFileWatch([]).start();
  expect(secretFileOf(TABLE, 'tokens', { X_TOKENS: 'one' })).toBeUndefined();
});

// They wait for looks at files: most of the time nothing happens, in all of them at once.
describe.concurrent('a file', () => {
  test('what is in force already is no change, in whatever order and form', async ({
    onTestFinished: onFinished,
  }) => {
    const file = new Followed();
    const { path, changes, problems } = file;
    file.follow(['two', 'one'], onFinished);
    await someLooks();
    writeFileSync(path, 'two\none\n\none');
    await someLooks();
    expect([changes, problems]).toEqual([[], []]);
  });

  test('a rewritten file, an exchanged one and an exchanged link are all seen', async ({
    onTestFinished: onFinished,
  }) => {
    const file = new Followed();
    const { path, changes } = file;
    file.follow(['one', 'two'], onFinished);
    writeFileSync(path, 'two,three');
    await seen(() => expect(changes).toEqual([['two', 'three']]));
    writeFileSync(`${path}.new`, 'three');
    renameSync(`${path}.new`, path);
    await seen(() => expect(changes.at(-1)).toEqual(['three']));
    // As secrets are mounted: a link to a folder by a link, which is renamed over.
    for (const [folder, tokens] of Object.entries({ a: 'four', b: 'five' })) {
      mkdirSync(`${path}.${folder}`);
      writeFileSync(join(`${path}.${folder}`, 'tokens'), tokens);
    }
    symlinkSync(`${path}.a`, `${path}.data`);
    rmSync(path);
    symlinkSync(join(`${path}.data`, 'tokens'), path);
    await seen(() => expect(changes.at(-1)).toEqual(['four']));
    symlinkSync(`${path}.b`, `${path}.next`);
    renameSync(`${path}.next`, `${path}.data`);
    await seen(() => expect(changes.at(-1)).toEqual(['five']));
    expect(changes).toHaveLength(4);
  });

  test('that one of two equal entries became another is a change', async ({
    onTestFinished: onFinished,
  }) => {
    const file = new Followed('one,one');
    const { changes } = file;
    file.follow(['one', 'two'], onFinished);
    await seen(() => expect(changes).toEqual([['one', 'one']]));
  });

  test.for<[string, (path: string) => void]>([
    ['holds nothing', (path) => writeFileSync(path, '')],
    ['holds no entry', (path) => writeFileSync(path, ' ,\n, ')],
    ['cannot carry', (path) => writeFileSync(path, 'o ne')],
    ['ENOENT', (path) => rmSync(path)],
    ['is no file', (path) => (rmSync(path), mkdirSync(path))],
    ['more than', (path) => writeFileSync(path, 'x'.repeat(1_100_000))],
  ])(
    'a file that %s changes nothing, is told once, and is told when it is well again',
    async ([text, spoil], { onTestFinished: onFinished }) => {
      const file = new Followed();
      const { path, changes, problems } = file;
      file.follow(['one', 'two'], onFinished);
      spoil(path);
      await seen(() => expect(problems).toEqual([expect.stringContaining(text)]));
      await someLooks();
      expect([changes, problems.length]).toEqual([[], 1]);
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, 'three');
      await seen(() => expect(changes).toEqual([['three']]));
      expect(problems).toEqual([expect.anything(), null]);
      expect(problems[0]).not.toContain('o ne');
    },
  );

  test('a file that never stands still is never taken: a token that is half written is none', async ({
    onTestFinished: onFinished,
  }) => {
    const file = new Followed();
    const { path, changes } = file;
    file.follow(['one', 'two'], onFinished);
    let length = 1;
    const writer = setInterval(() => writeFileSync(path, 'x'.repeat((length += 1))), 20);
    await someLooks();
    await someLooks();
    await someLooks();
    clearInterval(writer);
    expect(changes).toEqual([]);
    writeFileSync(path, 'whole');
    await seen(() => expect(changes).toEqual([['whole']]));
  });

  test('after stop nobody is told', async ({ onTestFinished: onFinished }) => {
    const file = new Followed();
    const { path, changes } = file;
    file.follow(['one', 'two'], onFinished);
    await file.watch.stop();
    writeFileSync(path, 'three');
    await someLooks();
    expect(changes).toEqual([]);
  });
});
