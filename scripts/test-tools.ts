// `npm run test:tools`: brings the programs that some tests use and that are no dependency, as far as this machine can have
// them (Debian packages where root may install them, else what npm has, or Go and cargo build), runs the tests that are skipped for
// want of them, and says what is still missing. `-- --list` only says what is here, `-- --bring` runs no tests; both are about
// the programs that are named behind them, if any. Exit code: that of the tests, 2 for wrong arguments.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findProgram } from './allowed-skips.ts';
import { TEST_TOOLS, type TestTool } from './test-tools/tool-table.ts';

const ROOT = join(import.meta.dirname, '..');
/** Programs that were built. An installation from scratch removes them. */
const BUILT = join(ROOT, 'node_modules/.cache/test-tools');
const BUILD_TIMEOUT_MS = 30 * 60_000;

type Outcome = { readonly tool: TestTool; readonly path?: string; readonly reason?: string };

process.env['PATH'] = [process.env['PATH'], join(BUILT, 'bin')].join(delimiter);

/** Runs a program quietly; undefined, or the last line of what it said where it failed. */
function failureOf(program: string, args: readonly string[], env = {}): string | undefined {
  const { status, error, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
    timeout: BUILD_TIMEOUT_MS,
    maxBuffer: 1 << 26,
  });
  if (status === 0) return undefined;
  return error?.message ?? stderr.trim().split('\n').at(-1) ?? `exit code ${status}`;
}

const pathOf = ({ program }: TestTool): string | undefined => findProgram(program, process.env);

let isListFresh = false;
function installDebian(name: string): string | undefined {
  if (findProgram('apt-get', process.env) === undefined) return 'there is no apt-get here';
  if (process.geteuid?.() !== 0) return `apt-get install ${name} is for root`;
  if (!isListFresh) failureOf('apt-get', ['update', '-q']);
  isListFresh = true;
  const args = ['install', '-q', '-y', '--no-install-recommends', name];
  // Nobody is asked, and no daemon is started.
  return failureOf('apt-get', args, { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' });
}

function build(tool: TestTool): string | undefined {
  mkdirSync(join(BUILT, 'bin'), { recursive: true });
  if (tool.npm !== undefined) return installPackage(tool.program, tool.npm);
  if (tool.go !== undefined) {
    if (findProgram('go', process.env) === undefined) return 'there is no Go to build it';
    return failureOf('go', ['install', tool.go], {
      GOBIN: join(BUILT, 'bin'),
      GOFLAGS: '-mod=mod',
    });
  }
  if (findProgram('cargo', process.env) === undefined) return 'there is no cargo to build it';
  const [name = '', version = ''] = (tool.crate ?? '').split('@');
  return failureOf('cargo', ['install', '--locked', '--root', BUILT, `${name}@${version}`]);
}

/** Into a folder of its own, since its programs have the names of others. */
function installPackage(
  program: string,
  packages: NonNullable<TestTool['npm']>,
): string | undefined {
  const wanted = packages[`${process.platform}-${process.arch}`];
  if (wanted === undefined) return `npm has none for ${process.platform} ${process.arch}`;
  const folder = join(BUILT, program);
  const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const reason = failureOf('npm', ['install', '--prefix', folder, ...options, wanted]);
  if (reason !== undefined) return reason;
  const link = join(BUILT, 'bin', program);
  rmSync(link, { force: true });
  const name = wanted.slice(0, wanted.lastIndexOf('@'));
  symlinkSync(join(folder, 'node_modules', name, 'bin/node'), link);
  return undefined;
}

/** Is the Debian package there? Of those that are libraries the program says nothing. */
function hasPackage(name: string): boolean {
  const { status, stdout } = spawnSync('dpkg-query', ['-W', '-f', '${Status}', name], {
    encoding: 'utf8',
  });
  return status === 0 && stdout.startsWith('install ok');
}

/** Finds or brings one program. */
function bring(tool: TestTool, isListing: boolean): Outcome {
  const isLibrary = tool.isLibrary ?? false;
  const found = isLibrary && !hasPackage(tool.debian ?? '') ? undefined : pathOf(tool);
  if (found !== undefined) return { tool, path: found };
  if (isListing) return { tool, reason: 'not here' };
  process.stdout.write(`${tool.program}: bringing it …\n`);
  const reason = tool.debian === undefined ? build(tool) : installDebian(tool.debian);
  const path = pathOf(tool);
  if (reason !== undefined || path === undefined) {
    return { tool, reason: reason ?? 'it was installed, and is not on the PATH' };
  }
  return { tool, path };
}

function pathOfVariable({ tool, path = '' }: Outcome): readonly [string, string] | undefined {
  if (tool.variable === undefined || path === '') return undefined;
  // What Debian installs for its own interpreter another one does not see.
  return [tool.variable, tool.isLibrary === true ? join('/usr/bin', tool.program) : path];
}

function main(): number {
  const [option = '', ...names] = process.argv.slice(2);
  const unknown = names.find((name) => !TEST_TOOLS.some(({ program }) => program === name));
  if (!['', '--list', '--bring'].includes(option) || unknown !== undefined) {
    const what = unknown ?? option;
    process.stderr.write(`${what} is no option or program: [--list | --bring] [PROGRAM …]\n`);
    return 2;
  }
  const isListing = option === '--list';
  const wanted = TEST_TOOLS.filter(({ program }) => names.length === 0 || names.includes(program));
  const outcomes = wanted.map((tool) => bring(tool, isListing));
  for (const { tool, path, reason } of outcomes) {
    process.stdout.write(`${tool.program.padEnd(16)} ${path ?? `missing: ${reason}`}\n`);
  }
  if (isListing || option === '--bring') return 0;
  const here = outcomes.filter(({ path }) => path !== undefined);
  const variables = Object.fromEntries(here.map(pathOfVariable).filter((one) => one !== undefined));
  const files = [...new Set(here.flatMap(({ tool }) => tool.tests))];
  if (files.length === 0) return 1;
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...files], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...variables, ...process.env },
  });
  return status ?? 1;
}

process.exitCode = main();
