import { readFileSync } from 'node:fs';
import { type LoadPlan, type Operation, OWN_PROJECT, type Stage } from './load-plan.ts';

/** A file of a plan that says something else than one may; `field` is the path of what is wrong in it. */
export class PlanError extends Error {
  readonly field: string;

  constructor(field: string, problem: string) {
    super(field === '' ? problem : `${field}: ${problem}`);
    this.name = 'PlanError';
    this.field = field;
  }
}

const FILE_BYTES_MAX = 1 << 20;

/** Takes a value of the file at a path. Errors: PlanError. */
type Parser<T> = (value: unknown, path: string) => T;

function number(min: number, max: number, isWhole = false): Parser<number> {
  return (value, path) => {
    const isFine = typeof value === 'number' && value >= min && value <= max;
    if (isFine && (!isWhole || Number.isInteger(value))) return value;
    throw new PlanError(path, `is no ${isWhole ? 'whole number' : 'number'} from ${min} to ${max}`);
  };
}

function text(lengthMax: number): Parser<string> {
  return (value, path) => {
    if (typeof value === 'string' && value !== '' && value.length <= lengthMax) return value;
    throw new PlanError(path, `is no text of 1 to ${lengthMax} characters`);
  };
}

function choice<const T extends string>(choices: readonly T[]): Parser<T> {
  return (value, path) => {
    const chosen = choices.find((one) => one === value);
    if (chosen !== undefined) return chosen;
    throw new PlanError(path, `is none of ${choices.join(', ')}`);
  };
}

function or<T, F extends T | undefined>(fallback: F, parse: Parser<T>): Parser<T | F> {
  return (value, path) => (value === undefined ? fallback : parse(value, path));
}

function list<T>(countMax: number, parse: Parser<T>): Parser<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value) || value.length === 0 || value.length > countMax) {
      throw new PlanError(path, `is no list of 1 to ${countMax}`);
    }
    return value.map((one: unknown, i) => parse(one, `${path}[${i}]`));
  };
}

function record(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new PlanError(path, 'is no object');
}

type Shape = Readonly<Record<string, Parser<unknown>>>;
type Parsed<S extends Shape> = { readonly [K in keyof S]: ReturnType<S[K]> };

function object<S extends Shape>(shape: S): Parser<Parsed<S>> {
  return (value, path) => {
    const fields = record(value, path);
    const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
    const unknown = Object.keys(fields).find((name) => !Object.hasOwn(shape, name));
    if (unknown !== undefined) {
      throw new PlanError(at(unknown), `is none of ${Object.keys(shape).join(', ')}`);
    }
    const parsed = Object.entries(shape).map(([name, parse]) => [
      name,
      parse(fields[name], at(name)),
    ]);
    return Object.fromEntries(parsed) as Parsed<S>;
  };
}

const share = <const K extends string>(kind: K) => ({
  kind: choice([kind]),
  name: or(kind, text(40)),
  weight: or(1, number(0.0001, 1e6)),
});
const spread = or('uniform', choice(['uniform', 'zipf']));
const OPERATIONS = {
  check: object({ ...share('check'), spread }),
  batch_check: object({
    ...share('batch_check'),
    spread,
    items: or(100, number(1, 10_000, true)),
  }),
  list_objects: object(share('list_objects')),
  write: object({ ...share('write'), tuples: or(1, number(1, 1000, true)) }),
  request: object({
    ...share('request'),
    // Methods that change nothing: only they may be asked by a path of one's own.
    path: choice(
      ['Check', 'BatchCheck', 'Expand', 'ListObjects', 'ReadRelationTuples'].map(
        (method) => `/workspace.v1.AuthzService/${method}`,
      ),
    ),
    body: record,
  }),
};
const KINDS = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[];

function operation(value: unknown, path: string): Operation {
  const kind = choice(KINDS)(record(value, path)['kind'], `${path}.kind`);
  return OPERATIONS[kind](value, path);
}

function rate(value: unknown, path: string): { readonly from: number; readonly to: number } {
  const [constant, end] = [number(0.01, 1e6), number(0, 1e6)];
  if (typeof value === 'object') return object({ from: end, to: end })(value, path);
  return { from: constant(value, path), to: constant(value, path) };
}

const STAGE = object({
  name: or(undefined, text(40)),
  seconds: number(0.1, 24 * 3600),
  rate: or(undefined, rate),
  callers: or(undefined, number(1, 10_000, true)),
});

function stage(value: unknown, path: string): Stage {
  const { name, seconds, callers, rate: arrivals } = STAGE(value, path);
  const index = Number(/\[(\d+)\]$/.exec(path)?.[1]);
  const named = { name: name ?? `stage ${index + 1}`, seconds };
  if (arrivals !== undefined && callers === undefined) return { ...named, ...arrivals };
  if (arrivals === undefined && callers !== undefined) return { ...named, callers };
  throw new PlanError(path, 'has either rate or callers');
}

const PLAN = object({
  project: text(64),
  tenant: text(64),
  // Ten companies at least: of fewer no questions of every kind can be drawn.
  data: or(undefined, object({ scale: number(0.1, 100), seed: or(7, number(0, 2 ** 31, true)) })),
  operations: list(50, operation),
  stages: list(100, stage),
  deadline_ms: or(undefined, number(1, 600_000)),
});

/** Reads a plan (load/README.md, Files). Errors: PlanError with the field; those of the file system. */
export function readPlan(path: string): LoadPlan {
  const content = readFileSync(path, 'utf8');
  if (content.length > FILE_BYTES_MAX) throw new PlanError('', `${path} has more than 1 MiB`);
  return parsePlan(content);
}

/** Parses the text of a plan. Errors: PlanError with the field. */
export function parsePlan(content: string): LoadPlan {
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch (error) {
    throw new PlanError('', `is no JSON: ${(error as Error).message}`);
  }
  const { deadline_ms: deadlineMs, ...plan } = PLAN(json, '');
  assertConsistent(plan);
  return { ...plan, deadlineMs };
}

function assertConsistent({ project, data, operations, stages }: LoadPlan): void {
  const isOwn = OWN_PROJECT.test(project);
  if (data !== undefined && !isOwn) {
    throw new PlanError(
      'project',
      `must be named load-… to be filled with data, and is ${project}`,
    );
  }
  operations.forEach(({ kind }, i) => {
    const field = `operations[${i}].kind`;
    if (kind === 'write' && !isOwn) {
      throw new PlanError(field, `write needs a project named load-…, not ${project}`);
    }
    if (kind !== 'write' && kind !== 'request' && data === undefined) {
      throw new PlanError(field, `${kind} asks about data, which is absent`);
    }
  });
  assertOwnNames('operations', operations);
  assertOwnNames('stages', stages);
}

/** Figures are told by name: two of one name would be counted together. */
function assertOwnNames(field: string, all: readonly { readonly name: string }[]): void {
  const names = all.map(({ name }) => name);
  const index = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (index < 0) return;
  throw new PlanError(`${field}[${index}].name`, `${names[index]} is the name of another one`);
}
