/**
 * Runs act's own workflows through act on this machine and through this runner, and prints both results
 * of each as a table in Markdown, and the totals.
 *
 * usage: [ACT_DIR=<module of nektos/act>] node test/runner/compat/compare-with-act.ts [--all]
 * `--all` prints every row, otherwise those that differ. act is the program of ACT, else on PATH.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../../../src/observability/logger.ts';
import { createRunner } from '../../../src/runner/runner.ts';
import { loadRunnerSettings } from '../../../src/runner/settings/settings.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';
import { findAct, hostArguments, runAct } from '../../support/act-process.ts';
import { HOST_CASES, OTHER_CASES, type ActCase } from './act-cases.ts';
import { actTestData, isRunnable, makeActWorkspace, removeWorkspace } from './act-workspace.ts';
import { runCase } from './run-case.ts';

const ACT_TIMEOUT_MS = 120_000;

type Row = { readonly one: ActCase; readonly act: string; readonly ours: string };

async function main(): Promise<void> {
  const testData = actTestData();
  const act = findAct();
  if (act === undefined) {
    process.stderr.write('act must be on PATH, or ACT must name it\n');
    process.exitCode = 2;
    return;
  }
  for (const [title, list] of [
    ["act's list for hosts", HOST_CASES],
    ['others that need no container', OTHER_CASES],
  ] as const) {
    const cases = list.filter((one) => isRunnable(testData, one));
    const rows = await compare(testData, act, cases);
    print(title, list, rows);
  }
}

async function compare(
  testData: string,
  act: string,
  cases: readonly ActCase[],
): Promise<readonly Row[]> {
  const forAct = makeActWorkspace(testData, cases);
  const forUs = makeActWorkspace(testData, cases);
  const configHome = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
  const settings = { PORT: '0', HOST: '127.0.0.1', RUNNER_WORKSPACE: forUs };
  const runner = await createRunner(loadRunnerSettings(settings), {
    logger: createLogger('error', { write: () => undefined }),
    version: '0.0.0-compat',
    clock: systemClock,
    environment: { ...process.env, XDG_CONFIG_HOME: configHome },
  });
  try {
    const rows: Row[] = [];
    for (const one of cases) {
      const args = argumentsOf(forAct, one);
      const { exitCode } = await runAct(act, args, { cwd: forAct, timeoutMs: ACT_TIMEOUT_MS });
      const { result } = await runCase(runner.parts, one);
      rows.push({ one, act: exitCode === 0 ? 'success' : 'failure', ours: result });
      process.stderr.write(`${one.path}: act ${exitCode}, ours ${result}\n`);
    }
    return rows;
  } finally {
    await runner.stop();
    for (const folder of [forAct, forUs, configHome]) removeWorkspace(folder);
  }
}

function argumentsOf(workspace: string, one: ActCase): readonly string[] {
  const { path, event, inputs = {}, eventFile, secretFile, envFile } = one;
  const flags: readonly (readonly [string, string | undefined])[] = [
    ['--eventpath', eventFile],
    ['--secret-file', secretFile],
    ['--env-file', envFile],
  ];
  return [
    ...hostArguments(event, path),
    ...Object.entries(inputs).flatMap(([name, value]) => ['--input', `${name}=${value}`]),
    ...flags.flatMap(([flag, file]) => (file === undefined ? [] : [flag, join(path, file)])),
    '--directory',
    workspace,
  ];
}

function print(title: string, list: readonly ActCase[], rows: readonly Row[]): void {
  const isShown = ({ one, act, ours }: Row): boolean =>
    process.argv.includes('--all') || act !== ours || ours !== one.expected;
  const right = (of: (row: Row) => string): number =>
    rows.filter((row) => of(row) === row.one.expected).length;
  const lines = [
    `## ${title}`,
    '',
    `as expected: act ${right(({ act }) => act)}, ours ${right(({ ours }) => ours)}, of ${rows.length}`,
    '',
    '| workflow | expected | act | ours | why |',
    '|---|---|---|---|---|',
    ...rows
      .filter(isShown)
      .map(
        ({ one, act, ours }) =>
          `| ${one.path} | ${one.expected} | ${act} | ${ours} | ${one.differs ?? ''} |`,
      ),
    ...list.flatMap(({ path, left }) =>
      left === undefined ? [] : [`| ${path} | not run | | | ${left} |`],
    ),
    '',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

await main();
