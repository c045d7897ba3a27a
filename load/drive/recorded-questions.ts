import { readFileSync } from 'node:fs';
import { CHECK_PATH } from '../../bench/harness/target.ts';
import type { Replay } from './messages.ts';
import { PlanError } from './parse-plan.ts';
import type { Request } from './requests.ts';

/** When a request is due, in milliseconds from the start. */
export type DueRequest = { readonly dueMs: number; readonly request: Request };

const FIELDS = ['project_id', 'tenant_id', 'namespace', 'object_id', 'relation', 'subject_user_id'];
const anything = (): undefined => undefined;

/**
 * The questions of a file that a service recorded (GATEWAY_RECORD_FILE), in the rhythm in which they were asked. Of `of`
 * generators each takes its share. Errors: PlanError with the line; those of the file system.
 */
export function recordedQuestions(
  { path, speed, repeat }: Replay,
  { index, of }: { readonly index: number; readonly of: number },
): readonly DueRequest[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  // A process that ended in the middle of a line leaves a part of one; its line feed is missing.
  if (lines.at(-1) !== '' || lines.length === 1) lines.pop();
  const asked = lines.flatMap((line, i) => parseLine(line, i + 1));
  if (asked.length === 0) throw new PlanError('', `${path} holds no questions`);
  const [firstMs = 0, lastMs = 0] = [asked[0]?.atMs, asked.at(-1)?.atMs];
  const due = asked.flatMap(({ atMs, body }, i) => {
    const untilNextMs = (asked[i + 1]?.atMs ?? lastMs) - atMs;
    const request = { operation: 'recorded check', path: CHECK_PATH, body, faultOf: anything };
    return Array.from({ length: repeat }, (_, copy) => ({
      dueMs: (atMs - firstMs + (untilNextMs * copy) / repeat) / speed,
      request,
    }));
  });
  return due.filter((_, i) => i % of === index);
}

type Asked = { readonly atMs: number; readonly body: string };

function parseLine(line: string, number: number): Asked[] {
  if (line === '') return [];
  const fail = (field: string, problem: string): never => {
    throw new PlanError(`line ${number}${field === '' ? '' : `, ${field}`}`, problem);
  };
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return fail('', 'is no JSON');
  }
  if (value === null || typeof value !== 'object') return fail('', 'is no object');
  // The first line of a file says how it was recorded.
  if (value['recorded'] !== undefined) return [];
  const { at_ms: atMs } = value;
  if (typeof atMs !== 'number' || !Number.isFinite(atMs)) return fail('at_ms', 'is no number');
  for (const field of FIELDS) if (typeof value[field] !== 'string') fail(field, 'is no text');
  return [{ atMs, body: JSON.stringify(value, FIELDS) }];
}
