import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { type Service, startService } from '../../bench/harness/service.ts';
import {
  comparisonTable,
  runTable,
  serviceLine,
  tableLines,
  totalsOf,
  warningsOf,
} from '../report/figures.ts';
import { type LabelledRun, reportPage, runOf } from '../report/page.ts';
import { drive } from './drive.ts';
import { PlanError, readPlan } from './parse-plan.ts';
import { TargetError } from './prepare-target.ts';
import type { RunResult } from './run-result.ts';

const DEFAULT_MIX = new URL('../mixes/checks.json', import.meta.url).pathname;

/** What the command line may say of a run by a file; all are texts until they are looked at. */
const OPTIONS = {
  target: { type: 'string' },
  'token-file': { type: 'string' },
  'admin-secret-file': { type: 'string' },
  'metrics-url': { type: 'string', multiple: true },
  mix: { type: 'string' },
  replay: { type: 'string' },
  speed: { type: 'string', default: '1' },
  repeat: { type: 'string', default: '1' },
  generators: { type: 'string', default: '1' },
  connections: { type: 'string', default: '256' },
  report: { type: 'string' },
  json: { type: 'string' },
  title: { type: 'string' },
  yes: { type: 'boolean', default: false },
} as const;

export const DRIVE_USAGE = `any service, or one that it starts, by a file of requests:
  npm run load -- [--target URL] [--mix FILE | --replay FILE [--speed 1] [--repeat 1]] [--report FILE.html] [--json FILE]
    [--generators 1] [--connections 256] [--metrics-url URL]... [--token-file FILE] [--admin-secret-file FILE] [--title TEXT] [--yes]
  --metrics-url: where the target tells its metrics, of a target of several processes one for each; they are summed.
  Credentials: the files, or LOAD_TOKEN and LOAD_ADMIN_SECRET. --yes: the target may be another machine.
two runs beside each other:
  npm run load -- compare A B [--report FILE.html]
`;

/** Arguments that make no sense: said with how it is meant. */
export class UsageError extends Error {}

/** Whether the command line asks for a run by a file: it begins with an option, and names no scenario. */
export function isDrive(args: readonly string[], scenarios: readonly string[]): boolean {
  const [first = '--help'] = args;
  return (
    first.startsWith('--') && first !== '--help' && !args.some((arg) => scenarios.includes(arg))
  );
}

/**
 * Runs by a file. Returns the exit code: 0, or 1 when answers were wrong or nothing was answered. Errors: UsageError,
 * PlanError, TargetError.
 */
export async function driveCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const number = (name: 'speed' | 'repeat' | 'generators' | 'connections', max: number): number => {
    const value = Number(values[name]);
    if (value > 0 && value <= max && (name === 'speed' || Number.isInteger(value))) return value;
    throw new UsageError(`--${name} is no number up to ${max}`);
  };
  const { mix = DEFAULT_MIX, replay: path, target: url } = values;
  if (values.mix !== undefined && path !== undefined) {
    throw new UsageError('either --mix or --replay');
  }
  if (path !== undefined && url === undefined) {
    throw new UsageError('--replay needs --target: a service of its own would hold nothing to ask');
  }
  for (const file of [values.json, values.report]) assertWritable(file);
  const [speed, repeat] = [number('speed', 1000), number('repeat', 1000)];
  const replay = path === undefined ? undefined : { path, speed, repeat };
  const plan = replay === undefined ? readPlan(mix) : undefined;
  const generators = number('generators', 64);
  const connections = number('connections', 10_000);
  let service: Service | undefined;
  try {
    if (url === undefined) service = await startService();
    const token = service?.token ?? secretOf(values['token-file'], 'LOAD_TOKEN');
    const secretFile = values['admin-secret-file'];
    const run = await drive({
      title: values.title ?? `Load: ${basename(path ?? mix)}`,
      target: { url: service?.baseUrl ?? url ?? '', token },
      adminSecret: service?.adminSecret ?? secretOf(secretFile, 'LOAD_ADMIN_SECRET'),
      metricsUrls: values['metrics-url'] ?? (service === undefined ? [] : [service.metricsUrl]),
      plan,
      replay,
      generators,
      connections,
      isAgreed: values.yes,
    });
    const code = tell(run);
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run)}\n`);
    if (values.report !== undefined) writeReport(values.report, [{ label: '', run }]);
    return code;
  } finally {
    await service?.stop();
  }
}

/** Says the warnings of a run and its first wrong answers. Returns its exit code. */
export function tellRemarks(run: RunResult): number {
  const { wrong, answered } = totalsOf(run);
  for (const remark of [...warningsOf(run), ...run.failures]) process.stderr.write(`! ${remark}\n`);
  return wrong > 0 || answered === 0 ? 1 : 0;
}

function tell(run: RunResult): number {
  const totals = totalsOf(run);
  const { operations, generatorCpuCores, sentLateP99Ms } = run;
  const told = { title: run.title, ...totals, operations, generatorCpuCores, sentLateP99Ms };
  process.stdout.write(`${JSON.stringify(told, null, 2)}\n`);
  process.stderr.write(`\n${tableLines(runTable(run)).join('\n')}\n`);
  const service = serviceLine(run);
  if (service !== undefined) process.stderr.write(`${service}\n`);
  return tellRemarks(run);
}

/** `compare A B`: reports or JSON files of two runs. Errors: UsageError; throws for a file that is neither. */
export function compareCommand(args: readonly string[]): number {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { report: { type: 'string' } },
  });
  const read = (file: string): RunResult => {
    const text = readFileSync(file, 'utf8');
    try {
      return runOf(text, file);
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
  };
  assertWritable(values.report);
  const [beforeFile, afterFile] = positionals;
  if (beforeFile === undefined || afterFile === undefined || positionals.length > 2) {
    throw new UsageError('compare takes two files');
  }
  const [before, after] = [read(beforeFile), read(afterFile)];
  process.stdout.write(`${tableLines(comparisonTable(before, after)).join('\n')}\n`);
  const runs = [before, after].map((run, i) => ({ label: i === 0 ? 'A' : 'B', run }));
  if (values.report !== undefined) writeReport(values.report, runs);
  return 0;
}

/** Writes the report of a run, or of two, and tells its path. Errors: those of the file system. */
export function writeReport(file: string, runs: readonly LabelledRun[]): void {
  writeFileSync(file, reportPage(runs));
  process.stderr.write(`${file}\n`);
}

/** Refuses a file that cannot be written in its folder, before anything is asked. Errors: UsageError. */
export function assertWritable(file: string | undefined): void {
  if (file === undefined) return;
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch {
    throw new UsageError(`${file}: its folder is not there, or cannot be written to`);
  }
}

/** Reads a credential from a file, else from a variable: never of the command line, which every user of the machine can read. */
function secretOf(file: string | undefined, variable: string): string | undefined {
  const text = file === undefined ? process.env[variable] : readFileSync(file, 'utf8');
  const secret = text?.trim();
  if (secret === undefined || secret === '') return undefined;
  if (/\s/.test(secret)) {
    throw new UsageError(`${file ?? variable} holds more than one word: one credential is meant`);
  }
  return secret;
}

/** Whether an error is one that its words explain, without a stack. */
export function isExplained(error: unknown): error is Error {
  if ([UsageError, PlanError, TargetError].some((kind) => error instanceof kind)) return true;
  // A file that is not there, or an option that there is not.
  const code = error instanceof Error ? String((error as NodeJS.ErrnoException).code) : '';
  return /^(ENOENT|EACCES|EISDIR|ERR_PARSE_ARGS\w*)$/.test(code);
}
