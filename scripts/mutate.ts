/**
 * Mutation testing of what decides: `npm run mutate -- PATH...`, where a path is a file, a folder or
 * `file:FROM-TO` (lines). Stryker plants one fault at a time and runs the quick tests that reach it.
 * A fault that no test notices must be killed by a test of behaviour, or stand in
 * test/mutation/accepted.json with the reason why it changes nothing. Prints a row a file and what
 * survived; exits with 1 below 90 %, and for an entry of the list that is out of date.
 */
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Stryker } from '@stryker-mutator/core';
import { type AcceptedList, judge, type Judgement } from '../test/mutation/judge.ts';
import { testsOf } from '../test/mutation/tests-of.ts';

const ACCEPTED = 'test/mutation/accepted.json';
const REPORTS = 'reports/mutation';
const SCORE_MIN = 90;

/** Files below the paths that were given, each with the lines that were asked for. */
function filesOf(paths: readonly string[]): { file: string; lines: string }[] {
  return paths.flatMap((path) => {
    const [place = '', lines = ''] = path.split(':');
    if (!statSync(place).isDirectory()) return [{ file: place, lines }];
    const files = globSync(`${place}/**/*.ts`).filter((file) => !file.endsWith('.test.ts'));
    return files.toSorted().map((file) => ({ file, lines: '' }));
  });
}

async function mutate(file: string, lines: string, accepted: AcceptedList): Promise<Judgement> {
  const name = file.replaceAll('/', '-').replace(/\.ts$/, '');
  process.env['MUTATION_TESTS'] = testsOf(file).join(' ');
  const stryker = new Stryker({
    mutate: [lines === '' ? file : `${file}:${lines}`],
    testRunner: 'vitest',
    vitest: { configFile: 'vitest.mutation.config.ts', related: false },
    plugins: ['@stryker-mutator/vitest-runner'],
    coverageAnalysis: 'perTest',
    concurrency: Number(process.env['MUTATE_CONCURRENCY'] ?? Math.min(2, availableParallelism())),
    incremental: lines === '',
    incrementalFile: `${REPORTS}/${name}.incremental.json`,
    force: process.env['MUTATE_FORCE'] === '1',
    timeoutMS: 5000,
    timeoutFactor: 3,
    reporters: [], logLevel: 'warn',
    allowEmpty: true,
    // There is none: TypeScript 7 has no API for Stryker to rewrite references in it, and vitest needs none.
    tsconfigFile: 'none.json',
    ignorePatterns: ['/docs', '/deploy', '/load', '/reports', '/.data', '/.runner'],
  });
  const mutants = await stryker.runMutationTest();
  return judge(file, readFileSync(file, 'utf8'), mutants, lines === '' ? accepted[file] : []);
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}

// The property tests must be the same ones in each run: Stryker finds tests by their names.
process.env['SEED'] ??= '7';
const accepted = JSON.parse(readFileSync(ACCEPTED, 'utf8')) as AcceptedList;
const paths = process.argv.slice(2);
if (paths.length === 0) throw new Error('name files or folders: npm run mutate -- src/engine');
mkdirSync(REPORTS, { recursive: true });

let isGood = true;
const rows: string[] = [];
for (const { file, lines } of filesOf(paths)) {
  const result = await mutate(file, lines, accepted);
  const { total, killed, survived, stale } = result;
  const counted = total - result.accepted;
  const score = counted === 0 ? 100 : (killed / counted) * 100;
  isGood &&= score >= SCORE_MIN && stale.length === 0;
  rows.push(row([`\`${file}\``, total, killed, result.accepted, survived.length, score.toFixed(1)]));
  writeFileSync(
    `${REPORTS}/${file.replaceAll('/', '-')}.json`,
    JSON.stringify({ file, ...result }, null, 2),
  );
  console.log(rows.at(-1));
  for (const { line, text } of survived) console.log(`  ${file}:${line}  ${JSON.stringify(text)}`);
  for (const text of stale) console.log(`  not a survivor any more: ${JSON.stringify(text)}`);
}
console.log(`\n${row(['file', 'mutants', 'killed', 'accepted', 'survived', '%'])}`);
console.log(row(['---', '---:', '---:', '---:', '---:', '---:']));
for (const line of rows) console.log(line);
process.exitCode = isGood ? 0 : 1;
