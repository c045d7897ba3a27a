import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

/** A package with the real entry and cache, and sources of its own. */
function makePackage(main: string): { readonly dir: string; readonly main: string } {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-cache-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, 'src/runner'), { recursive: true });
  mkdirSync(join(dir, 'node_modules'));
  for (const name of ['runner.mjs', 'source-cache.mjs']) {
    cpSync(join(ROOT, 'scripts', name), join(dir, 'scripts', name));
  }
  cpSync(join(ROOT, 'bin'), join(dir, 'bin'), { recursive: true });
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  const path = join(dir, 'src/runner/cli-main.ts');
  writeFileSync(path, main);
  return { dir, main: path };
}

/** What it prints, and where it fails. */
function start(dir: string, ...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(dir, 'scripts/runner.mjs'), ...args],
    { encoding: 'utf8' },
  );
  return stdout + stderr;
}

const keptIn = (dir: string): string =>
  join(dir, 'node_modules/.cache/gatehouse', `stripped-${process.version}`);

describe('the cache of sources', { timeout: 120_000 }, () => {
  test('a second start reads what the first one kept, and says the same', () => {
    const { dir } = makePackage(
      "import { two } from './two.ts';\nconst word: string = `is ${two}`;\nconsole.log(word, process.argv.slice(2).join());\n",
    );
    writeFileSync(join(dir, 'src/runner/two.ts'), 'export const two: number = 2;\n');
    expect(start(dir, '-l', 'x')).toBe('is 2 -l,x\n');
    expect(readdirSync(keptIn(dir)).toSorted()).toEqual(['runner+cli-main.js', 'runner+two.js']);
    // Only who reads it can say this.
    const kept = join(keptIn(dir), 'runner+two.js');
    writeFileSync(kept, readFileSync(kept, 'utf8').replace('2;', '3;'));
    expect(start(dir)).toBe('is 3 \n');
  });

  test('a thread keeps what it read, though it is terminated', () => {
    const { dir, main } = makePackage(
      `import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
const thread = new Worker(new URL('thread.ts', import.meta.url));
while (!existsSync(process.argv[2] as string)) await setTimeout(20);
await thread.terminate();
`,
    );
    writeFileSync(
      join(dir, 'src/runner/thread.ts'),
      'const pauseMs: number = 60_000;\nsetInterval(() => undefined, pauseMs);\n',
    );
    const kept = join(keptIn(dir), 'runner+thread.js');
    const { stderr, status } = spawnSync(
      process.execPath,
      ['--import', join(dir, 'scripts/source-cache.mjs'), main, kept],
      { encoding: 'utf8', timeout: 60_000 },
    );
    expect([stderr, status]).toEqual(['', 0]);
    expect(readFileSync(kept, 'utf8')).toContain('= 60_000;');
  });

  test('a file that changed counts at once, even with the size and time that it had', () => {
    const { dir, main } = makePackage("console.log('one' as string);\n");
    const time = new Date('2026-01-01T00:00:00Z');
    utimesSync(main, time, time);
    expect(start(dir)).toBe('one\n');
    const { mtimeMs, size } = statSync(main);
    writeFileSync(main, "console.log('two' as string);\n");
    utimesSync(main, time, time);
    expect([statSync(main).size, statSync(main).mtimeMs]).toEqual([size, mtimeMs]);
    expect(start(dir)).toBe('two\n');
    expect(start(dir)).toBe('two\n');
  });

  test('an error stands at its own line and column', () => {
    const { dir } = makePackage(
      'type Big = {\n  readonly a: string;\n};\nconst big: Big = { a: "" };\nfail(big satisfies Big);\nfunction fail(what: Big): never {\n  throw new Error(`no ${what.a}`);\n}\n',
    );
    for (const text of [start(dir), start(dir)]) {
      expect(text).toContain('src/runner/cli-main.ts:7:9');
      expect(text).toContain('src/runner/cli-main.ts:5:1');
    }
  });

  test('what is no TypeScript is told as Node tells it, and a cut cache is not believed', () => {
    const { dir, main } = makePackage('const = ;\n');
    expect(start(dir)).toContain('SyntaxError');
    writeFileSync(main, "console.log('whole' as string);\n");
    expect(start(dir)).toBe('whole\n');
    const kept = join(keptIn(dir), 'runner+cli-main.js');
    writeFileSync(kept, readFileSync(kept, 'utf8').slice(0, 12));
    expect(start(dir)).toBe('whole\n');
  });

  test('where nothing can be kept all works', () => {
    const { dir } = makePackage("console.log('here' as string);\n");
    // A file in place of the folder stops root as well.
    writeFileSync(join(dir, 'node_modules/.cache'), '');
    chmodSync(join(dir, 'node_modules'), 0o555);
    expect(start(dir)).toBe('here\n');
    chmodSync(join(dir, 'node_modules'), 0o755);
  });

  test('the launcher finds the package from wherever a link to it stands', () => {
    const { dir } = makePackage("console.log('linked', process.argv[2] as string);\n");
    mkdirSync(join(dir, 'node_modules/.bin'));
    symlinkSync(process.execPath, join(dir, 'node_modules/.bin/node'));
    const link = join(dir, 'node_modules/.bin/gatehouse-runner');
    symlinkSync('../../bin/gatehouse-runner', link);
    const { stdout } = spawnSync(link, ['a b'], { encoding: 'utf8', cwd: tmpdir() });
    expect(stdout).toBe('linked a b\n');
  });
});
