// `npm run test:long`: runs the long tests folder by folder, and keeps what each came to in .vitest/long.json. `-- FOLDER …`
// runs these alone; `-- --resume` leaves out what passed at this commit. Its last line sums up all that the record
// has of this commit. Exit code: 0 when all that was asked for passed.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isSettled, type Result, type Results, sumOf } from './long-results.ts';

const ROOT = join(import.meta.dirname, '..');
const RECORD = join(ROOT, '.vitest/long.json');
const LONG_FILES = '{src,test}/**/*.long.{,pg.,host.}test.ts';

function git(...args: readonly string[]): string {
  return spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout.trim();
}

/** The commit, with a `+` where the tree differs from it. */
function commitOfTree(): string {
  const isChanged = git('status', '--porcelain') !== '';
  return `${git('rev-parse', 'HEAD')}${isChanged ? '+' : ''}`;
}

function readResults(): Results {
  try {
    return JSON.parse(readFileSync(RECORD, 'utf8')) as Results;
  } catch {
    return {}; // None yet.
  }
}

function runFolder(folder: string, files: readonly string[], commit: string): Result {
  process.stdout.write(`\n${folder}\n`);
  const from = performance.now();
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const { status, stdout } = spawnSync(process.execPath, [vitest, 'run', ...files], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: { ...process.env, TEST_LENGTH: 'long' },
  });
  process.stdout.write(stdout);
  return {
    commit,
    passed: status === 0,
    seconds: Math.round((performance.now() - from) / 1000),
    summary: /^\d+ passed, \d+ failed.*$/m.exec(stdout.slice(-4096))?.[0] ?? '0 passed, 1 failed',
  };
}

function main(): number {
  const words = process.argv.slice(2);
  const isResumed = words.includes('--resume');
  const wanted = words.filter((word) => word !== '--resume');
  const files = globSync(LONG_FILES, { cwd: ROOT }).filter(
    (file) => wanted.length === 0 || wanted.some((part) => file.includes(part)),
  );
  if (files.length === 0) {
    process.stderr.write(`no long test lies in ${wanted.join(', ')}\n`);
    return 2;
  }
  const commit = commitOfTree();
  const results = readResults();
  for (const [folder, inFolder = []] of Object.entries(Object.groupBy(files, dirname))) {
    if (isResumed && isSettled(results[folder], commit)) continue;
    results[folder] = runFolder(folder, inFolder, commit);
    mkdirSync(dirname(RECORD), { recursive: true });
    writeFileSync(RECORD, `${JSON.stringify(results, undefined, 2)}\n`);
  }
  const ofThis = Object.entries(results).filter(([, result]) => result.commit === commit);
  const lines = ofThis.map(([folder, { passed, seconds, summary }]) => {
    return `${passed ? 'passed' : 'FAILED'} ${String(seconds).padStart(5)} s  ${folder}: ${summary}`;
  });
  process.stdout.write(`\n${lines.join('\n')}\n\n${sumOf(ofThis.map(([, one]) => one))}\n`);
  return ofThis.every(([, { passed }]) => passed) ? 0 : 1;
}

process.exitCode = main();
