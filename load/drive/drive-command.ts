import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { type Service, startService } from '../../bench/harness/service.ts';
import { comparisonReport, differencesOf } from '../report/comparison-report.ts';
import { REPORT_BYTES_MAX, runOf } from '../report/report-page.ts';
import { runReport, totalsOf, warningsOf } from '../report/run-report.ts';
import { runTable } from '../report/run-table.ts';
import { drive } from './drive.ts';
import type { Target } from './messages.ts';
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

export const DRIVE_USAGE = `a service that runs already, or one of its own, by a file of what to ask:
  npm run load -- [--target URL] [--mix FILE | --replay FILE [--speed 1] [--repeat 1]] [--report FILE.html] [--json FILE]
    [--generators 1] [--connections 256] [--metrics-url URL]... [--token-file FILE] [--admin-secret-file FILE] [--title TEXT] [--yes]
  --metrics-url: where the target tells its metrics, of a target of several processes one for each; they are summed.
  Credentials: the files, or LOAD_TOKEN and LOAD_ADMIN_SECRET. --yes: the target may be another machine.
two runs beside each other:
  npm run load -- compare A B [--report FILE.html]
`;

/** Arguments that make no sense: said with how it is meant. */
export class UsageError extends Error {}

/** Whether the command line asks for a run by a file. */
export function isDrive(args: readonly string[]): boolean {
  return args.some((arg) => /^--(target|mix|replay)(=|$)/.test(arg));
}

/**
 * Runs by a file. Returns the exit code: 0, or 1 when answers were wrong or nothing was answered. Errors: UsageError,
 * PlanError, TargetError.
 */
export async function driveCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const number = (name: 'speed' | 'repeat' | 'generators' | 'connections', max: number): number => {
    const value = Number(values[name]);
    const isFine = value > 0 && value <= max && (name === 'speed' || Number.isInteger(value));
    if (!isFine) throw new UsageError(`--${name} is no number up to ${max}`);
    return value;
  };
  if (values.mix !== undefined && values.replay !== undefined) {
    throw new UsageError('either --mix or --replay');
  }
  if (values.replay !== undefined && values.target === undefined) {
    throw new UsageError(
      '--replay needs --target: a service of its own would hold nothing to ask about',
    );
  }
  const mix = values.mix ?? DEFAULT_MIX;
  const replay =
    values.replay === undefined
      ? undefined
      : { path: values.replay, speed: number('speed', 1000), repeat: number('repeat', 1000) };
  const plan = replay === undefined ? readPlan(mix) : undefined;
  const generators = number('generators', 64);
  const connections = number('connections', 10_000);
  let service: Service | undefined;
  try {
    if (values.target === undefined) service = await startService();
    const target: Target =
      service === undefined
        ? {
            url: values.target ?? '',
            token: secretOf(values['token-file'], 'LOAD_TOKEN'),
          }
        : { url: service.baseUrl, token: service.token };
    const run = await drive({
      title: values.title ?? `Load: ${basename(values.replay ?? mix)}`,
      target,
      adminSecret:
        service?.adminSecret ?? secretOf(values['admin-secret-file'], 'LOAD_ADMIN_SECRET'),
      metricsUrls: values['metrics-url'] ?? (service === undefined ? [] : [service.metricsUrl]),
      plan,
      replay,
      generators,
      connections,
      isAgreed: values.yes,
    });
    return tell(run, values.report, values.json);
  } finally {
    await service?.stop();
  }
}

function tell(
  run: RunResult,
  reportFile: string | undefined,
  jsonFile: string | undefined,
): number {
  const totals = totalsOf(run);
  const { operations, generatorCpuCores, sentLateP99Ms } = run;
  process.stdout.write(
    `${JSON.stringify({ title: run.title, ...totals, operations, generatorCpuCores, sentLateP99Ms }, null, 2)}\n`,
  );
  process.stderr.write(`\n${runTable(run).join('\n')}\n`);
  for (const warning of warningsOf(run)) process.stderr.write(`! ${warning}\n`);
  for (const failure of run.failures) process.stderr.write(`! ${failure}\n`);
  if (jsonFile !== undefined) writeFileSync(jsonFile, `${JSON.stringify(run)}\n`);
  if (reportFile !== undefined) writeReport(reportFile, runReport(run));
  return totals.wrong > 0 || totals.answered === 0 ? 1 : 0;
}

/** `compare A B`: reports or JSON files of two runs. Errors: UsageError; throws for a file that is neither. */
export function compareCommand(args: readonly string[]): number {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { report: { type: 'string' } },
  });
  const [beforeFile, afterFile] = positionals;
  if (beforeFile === undefined || afterFile === undefined || positionals.length > 2) {
    throw new UsageError('compare takes two files');
  }
  const [before, after] = [beforeFile, afterFile].map((file) =>
    runOf(readFileSync(file, 'utf8'), file),
  ) as [RunResult, RunResult];
  const differences = differencesOf(before, after);
  const width = Math.max(...differences.map(({ name }) => name.length));
  for (const { name, before: a, after: b, percent } of differences) {
    const change = Number.isNaN(percent) ? '' : `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
    process.stdout.write(
      `${name.padEnd(width)}  ${a.toPrecision(4).padStart(12)}  ${b.toPrecision(4).padStart(12)}  ${change}\n`,
    );
  }
  if (values.report !== undefined) writeReport(values.report, comparisonReport(before, after));
  return 0;
}

function writeReport(file: string, html: string): void {
  const bytes = Buffer.byteLength(html);
  if (bytes > REPORT_BYTES_MAX) {
    throw new Error(`the report would have ${bytes} bytes, more than ${REPORT_BYTES_MAX}`);
  }
  writeFileSync(file, html);
  process.stderr.write(`${file}\n`);
}

/** Of a file, else of a variable: never of the command line, which every user of the machine can read. */
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
  if (error instanceof UsageError || error instanceof PlanError) return true;
  if (error instanceof TargetError) return true;
  // A file that is not there, or an option that there is not.
  const code = error instanceof Error ? String((error as NodeJS.ErrnoException).code) : '';
  return /^(ENOENT|EACCES|EISDIR|ERR_PARSE_ARGS\w*)$/.test(code);
}
