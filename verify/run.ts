import { randomBytes } from 'node:crypto';
/**
 * `npm run verify -- [--seconds 60] [--seed S] [--instances 3] [--faults list] [--target URL]… [--replay FILE]`:
 * whether several instances answer as one. docs/consistency.md says what is checked.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkHistory, isClean } from './checker/check-history.ts';
import { coverageFaults } from './checker/coverage.ts';
import { loadRun, saveRun } from './checker/history-file.ts';
import { DISTURBANCE_NAMES, type DisturbanceName } from './disturb/disturbances.ts';
import { faultsText, summaryOf } from './report.ts';
import { type VerifyOptions, verify } from './verify.ts';

const USAGE = `usage: npm run verify -- [--seconds 60] [--seed S] [--instances 3] [--round 40] [--faults NAMES]
                         [--tree DIRECTORY] [--out DIRECTORY] [--verbose]
       npm run verify -- --target URL [--target URL]… [--token-file F] [--admin-secret-file F] …
       npm run verify -- --replay FILE
--faults is a list of ${DISTURBANCE_NAMES.join(', ')}; 'none' is none, and all when left out.
--tree is another checkout whose service is started. Histories are saved below --out (.verify).`;

/** As a shell says of what SIGINT ended. */
const ENDED = 130;

/** Says when something is done to the processes. */
function noteOf(): (text: string) => void {
  const startMs = performance.now();
  return (text) => say(`  ${((performance.now() - startMs) / 1000).toFixed(1)}s ${text}`);
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function replay(path: string): number {
  const { history, instances } = loadRun(path);
  const report = checkHistory(history);
  const proves = coverageFaults(report.coverage, instances);
  say(`${path}: seed ${history.seed}; ${summaryOf(history, report)}`);
  const faults = faultsText(history, report);
  if (faults !== '') say(faults);
  for (const text of proves) say(`proves nothing: ${text}`);
  return isClean(report) && proves.length === 0 ? 0 : 1;
}

function faultsOf(text: string | undefined): readonly DisturbanceName[] | undefined {
  if (text === undefined) return DISTURBANCE_NAMES;
  const names = text === 'none' ? [] : text.split(',');
  const known = DISTURBANCE_NAMES.filter((name) => names.includes(name));
  return known.length === names.length ? known : undefined;
}

function secretOf(path: string | undefined): string {
  return path === undefined ? '' : readFileSync(path, 'utf8').trim();
}

function readArgs() {
  return parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '60' },
      round: { type: 'string', default: '40' },
      seed: { type: 'string', default: randomBytes(4).toString('hex') },
      instances: { type: 'string', default: '3' },
      faults: { type: 'string' },
      target: { type: 'string', multiple: true, default: [] },
      'token-file': { type: 'string' },
      'admin-secret-file': { type: 'string' },
      tree: { type: 'string', default: join(import.meta.dirname, '..') },
      out: { type: 'string', default: '.verify' },
      replay: { type: 'string' },
      verbose: { type: 'boolean', default: false },
    },
  }).values;
}

async function main(): Promise<number> {
  let values: ReturnType<typeof readArgs>;
  try {
    values = readArgs();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    return 2;
  }
  if (values.help) {
    say(USAGE);
    return 0;
  }
  if (values.replay !== undefined) return replay(values.replay);
  const numbers = [values.seconds, values.round, values.instances].map(Number);
  const faults = faultsOf(values.faults);
  if (faults === undefined || !numbers.every((n) => Number.isFinite(n) && n > 0)) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const [seconds = 60, roundSeconds = 40, instances = 3] = numbers;
  mkdirSync(values.out, { recursive: true });
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  const options: VerifyOptions = {
    signal: ending.signal,
    ...(values.verbose ? { note: noteOf() } : {}),
    seed: values.seed,
    seconds,
    roundSeconds,
    instances: values.target.length > 0 ? values.target.length : instances,
    faults: values.target.length > 0 ? [] : faults,
    tree: values.tree,
    target: values.target,
    token: secretOf(values['token-file']),
    adminSecret: secretOf(values['admin-secret-file']),
    say,
    save: (name, run) => {
      const path = join(values.out, `${name}.jsonl.gz`);
      saveRun(path, run);
      return path;
    },
  };
  const { isGood, isEnded } = await verify(options);
  return isEnded ? ENDED : isGood ? 0 : 1;
}

process.exitCode = await main();
