import type { LogQuery } from '../model/ports.ts';
import type { Job, Step, WorkflowRun } from '../model/run.ts';
import type { RunStore } from '../model/storage.ts';

const NEWLINE = 10;
const HEADERS = ['=== Job:', '--- Step'] as const;
const HEADER_AT_START = /^(?:=== Job:|--- Step)/gm;

/**
 * The log of a run in the form of the contract: a header line for each job and each of its steps, the
 * lines of a step below it, an empty line between jobs. A line that begins like a header is indented by
 * one space (§2.10). Memory: one chunk of the store and one line.
 */
export async function* runLogText(
  store: RunStore,
  run: WorkflowRun,
  query: LogQuery,
): AsyncGenerator<string | Uint8Array> {
  let isFirst = true;
  for (const job of run.jobs) {
    if (query.jobId !== undefined && job.id !== query.jobId) continue;
    yield `${isFirst ? '' : '\n'}=== Job: ${job.id} (${oneLine(job.name)}) ===\n`;
    isFirst = false;
    for (const step of job.steps) {
      if (query.stepNumber !== undefined && step.number !== query.stepNumber) continue;
      const state = step.conclusion ?? step.status;
      yield `--- Step ${step.number}: ${oneLine(step.name)} [${state}] ---\n`;
      if (hasLog(step)) yield* stepLines(store, run.id, job, step, query.tail);
    }
  }
  if (isFirst) yield '\n';
}

/** A step that never started in this attempt may have lines of an earlier one on the disk. */
export function hasLog(step: Step): boolean {
  return step.startedAt !== undefined;
}

async function* stepLines(
  store: RunStore,
  runId: string,
  job: Job,
  step: Step,
  tail: number | undefined,
): AsyncGenerator<string | Uint8Array> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of store.readLog(runId, job.id, step.number, tail)) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    rest = bytes.subarray(end);
    if (end > 0) yield withoutHeaders(bytes.subarray(0, end));
  }
  if (rest.length > 0) yield withoutHeaders(Buffer.concat([rest, Buffer.of(NEWLINE)]));
}

/** Whole lines, searched before anything is decoded: hardly any line looks like a header. */
function withoutHeaders(lines: Buffer): string | Uint8Array {
  if (HEADERS.every((header) => !lines.includes(header))) return lines;
  return lines.toString('utf8').replaceAll(HEADER_AT_START, ' $&');
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}

/** A budget of bytes that several logs share. */
export type TextBudget = { bytes: number };

/**
 * The log of one step as text, at most `bytesMax` and what `budget` has left; a last line says so when
 * more was there.
 */
export async function stepLogText(
  store: RunStore,
  runId: string,
  jobId: string,
  stepNumber: number,
  bytesMax: number,
  budget: TextBudget,
): Promise<string> {
  const max = Math.min(bytesMax, budget.bytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of store.readLog(runId, jobId, stepNumber)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > max) break;
  }
  const all = Buffer.concat(chunks);
  if (size <= max) {
    budget.bytes -= size;
    return all.toString('utf8');
  }
  budget.bytes -= max;
  const end = all.lastIndexOf(NEWLINE, Math.max(0, max - 1)) + 1;
  const shown = max === 0 ? '' : all.toString('utf8', 0, end);
  return `${shown}[The log is longer than ${max} bytes: the rest is in GET /api/runs/${runId}/logs]\n`;
}
