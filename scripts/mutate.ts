/**
 * Mutation testing of what decides: `npm run mutate -- PATH...`, where a path is a file, a folder or
 * `file:FROM-TO` (lines). Stryker plants one fault at a time and runs the quick tests that reach it.
 * A fault that no test notices must be killed by a test of behaviour, or stand in
 * test/mutation/accepted.json with the reason why it changes nothing. Prints a row a file and what
 * survived; exits with 1 below 90 %, and for an entry of the list that is out of date.
 * MUTATE_CONCURRENCY is how many mutants are tried at once (2). With `--in-process` the same faults
 * are tried with the same tests in threads that load them once, in a tenth of the time; `--minutes`
 * ends such a run early, and the next one goes on where it was.
 */
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { mutateInProcess } from '../test/mutation/in-process/mutate-in-process.ts';
import { type AcceptedList, judge, type Judgement, type Mutant } from '../test/mutation/judge.ts';
import { testsOf } from '../test/mutation/tests-of.ts';

const ACCEPTED = 'test/mutation/accepted.json';
const REPORTS = 'reports/mutation';
const SCORE_MIN = 90;

type Target = { readonly file: string; readonly lines: string };
/** What Stryker keeps of a run, as far as it is looked at here. */
type Kept = { files: Record<string, { mutants: { readonly status: string }[] }> };

/** Files below the paths that were given, each with the lines that were asked for. */
function targetsOf(paths: readonly string[]): Target[] {
  return paths.flatMap((path) => {
    const [place = '', lines = ''] = path.split(':');
    if (!statSync(place).isDirectory()) return [{ file: place, lines }];
    const files = globSync(`${place}/**/*.ts`).filter((file) => !file.endsWith('.test.ts'));
    return files.toSorted().map((file) => ({ file, lines: '' }));
  });
}

/** Survivors are tried again each time: Stryker does not see that a new test could reach them. */
function forgetSurvivors(incrementalFile: string): void {
  if (!existsSync(incrementalFile)) return;
  const kept = JSON.parse(readFileSync(incrementalFile, 'utf8')) as Kept;
  for (const file of Object.values(kept.files)) {
    file.mutants = file.mutants.filter(({ status }) => status === 'Killed' || status === 'Timeout');
  }
  writeFileSync(incrementalFile, JSON.stringify(kept));
}

async function runStryker({ file, lines }: Target): Promise<readonly Mutant[]> {
  const incrementalFile = `${REPORTS}/${file.replaceAll('/', '-')}.incremental.json`;
  if (lines === '') forgetSurvivors(incrementalFile);
  process.env['MUTATION_TESTS'] = testsOf(file).join(' ');
  const stryker = new Stryker({
    configFile: 'stryker.config.json',
    mutate: [lines === '' ? file : `${file}:${lines}`],
    concurrency,
    incremental: lines === '',
    incrementalFile,
  });
  return stryker.runMutationTest();
}

async function mutate(target: Target, accepted: AcceptedList): Promise<Judgement> {
  const { file, lines } = target;
  const source = readFileSync(file, 'utf8');
  const mutants = isInProcess
    ? await mutateInProcess(
        { ...target, source, untilMs },
        testsOf(file),
        concurrency,
        `${REPORTS}/${file.replaceAll('/', '-')}.tried.json`,
      )
    : await runStryker(target);
  return judge(file, source, mutants, lines === '' ? accepted[file] : []);
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}

// The property tests must be the same ones in each run, and few: Stryker finds tests by their names.
process.env['SEED'] ??= '7';
process.env['FUZZ_RUNS'] ??= '0.25';
const accepted = JSON.parse(readFileSync(ACCEPTED, 'utf8')) as AcceptedList;
const { positionals: paths, values } = parseArgs({
  allowPositionals: true,
  options: { 'in-process': { type: 'boolean', default: false }, minutes: { type: 'string' } },
});
const isInProcess = values['in-process'];
const untilMs = performance.now() + Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
const concurrency = Number(process.env['MUTATE_CONCURRENCY'] ?? 2);
if (paths.length === 0) throw new Error('name files or folders: npm run mutate -- src/engine');
mkdirSync(REPORTS, { recursive: true });

let isGood = true;
const rows: string[] = [];
for (const target of targetsOf(paths)) {
  const { file } = target;
  const result = await mutate(target, accepted).catch((error: unknown) => {
    console.log(`${file}: ${String(error)}`);
    return undefined;
  });
  if (result === undefined) {
    isGood = false;
    continue;
  }
  const { total, killed, untried, survived, stale } = result;
  const counted = total - result.accepted;
  const score = counted === 0 ? 100 : (killed / counted) * 100;
  isGood &&= score >= SCORE_MIN && stale.length === 0 && untried === 0;
  const report = `${REPORTS}/${file.replaceAll('/', '-')}.json`;
  if (target.lines === '') writeFileSync(report, JSON.stringify({ file, ...result }, null, 2));
  const cells = [`\`${file}\``, total, killed, result.accepted, survived.length, score.toFixed(1)];
  console.log(row(cells));
  rows.push(row(cells));
  if (untried > 0) console.log(`  ${untried} of it not tried yet: run it again`);
  for (const { line, text } of survived) console.log(`  ${line}: ${JSON.stringify(text)}`);
  for (const text of stale) console.log(`  not a survivor any more: ${JSON.stringify(text)}`);
}
console.log(`\n${row(['file', 'mutants', 'killed', 'accepted', 'survived', '%'])}`);
console.log(row(['---', '---:', '---:', '---:', '---:', '---:']));
for (const line of rows) console.log(line);
process.exitCode = isGood ? 0 : 1;
