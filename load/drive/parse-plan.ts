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

/** Ten companies: of fewer no questions of every kind can be drawn. */
const SCALE_MIN = 0.1;
const OPERATIONS_MAX = 50;
const STAGES_MAX = 100;
const SECONDS_MAX = 24 * 3600;
const RATE_MAX = 1_000_000;
const CALLERS_MAX = 10_000;
const FILE_BYTES_MAX = 1 << 20;
/** Methods that change nothing: only they may be asked by a path of one's own. */
const READING_METHODS = [
  '/workspace.v1.AuthzService/Check',
  '/workspace.v1.AuthzService/BatchCheck',
  '/workspace.v1.AuthzService/Expand',
  '/workspace.v1.AuthzService/ListObjects',
  '/workspace.v1.AuthzService/ReadRelationTuples',
];

/** Reads a plan (load/README.md, Files). Errors: PlanError with the field; those of the file system. */
export function readPlan(path: string): LoadPlan {
  const text = readFileSync(path, 'utf8');
  if (text.length > FILE_BYTES_MAX) throw new PlanError('', `${path} has more than 1 MiB`);
  return parsePlan(text);
}

/** The same of its text. */
export function parsePlan(text: string): LoadPlan {
  const fields = new Fields('', parseJson(text), [
    'project',
    'tenant',
    'data',
    'operations',
    'stages',
    'deadline_ms',
  ]);
  const project = fields.text('project', 64);
  const data = fields.optional('data', (value, path) => {
    const part = new Fields(path, value, ['scale', 'seed']);
    return {
      scale: part.number('scale', { min: SCALE_MIN, max: 100 }),
      seed: part.number('seed', { min: 0, max: 2 ** 31, fallback: 7, isWhole: true }),
    };
  });
  const operations = fields.list('operations', OPERATIONS_MAX, parseOperation);
  const stages = fields.list('stages', STAGES_MAX, parseStage);
  const plan = {
    project,
    tenant: fields.text('tenant', 64),
    data,
    operations,
    stages,
    deadlineMs: fields.optional('deadline_ms', () =>
      fields.number('deadline_ms', { min: 1, max: 600_000 }),
    ),
  };
  assertConsistent(plan);
  return plan;
}

function assertConsistent({ project, data, operations, stages }: LoadPlan): void {
  if (data !== undefined && !OWN_PROJECT.test(project)) {
    throw new PlanError(
      'project',
      `must be named load-… to be filled with data, and is ${project}`,
    );
  }
  operations.forEach(({ kind, name }, i) => {
    if (kind === 'write' && !OWN_PROJECT.test(project)) {
      throw new PlanError(
        `operations[${i}].kind`,
        `write needs a project named load-…, not ${project}`,
      );
    }
    if (kind !== 'write' && kind !== 'request' && data === undefined) {
      throw new PlanError(`operations[${i}].kind`, `${kind} asks about data, which is absent`);
    }
    assertOwnName('operations', operations, name, i);
  });
  // Figures are told by name: two of one name would be counted together.
  stages.forEach(({ name }, i) => assertOwnName('stages', stages, name, i));
}

function assertOwnName(
  field: string,
  all: readonly { readonly name: string }[],
  name: string,
  index: number,
): void {
  if (all.findIndex((other) => other.name === name) === index) return;
  throw new PlanError(`${field}[${index}].name`, `${name} is the name of another one`);
}

function parseOperation(value: unknown, path: string): Operation {
  const fields = new Fields(path, value, [
    'kind',
    'name',
    'weight',
    'spread',
    'items',
    'tuples',
    'path',
    'body',
  ]);
  const kind = fields.choice('kind', ['check', 'batch_check', 'list_objects', 'write', 'request']);
  const common = {
    name: fields.has('name') ? fields.text('name', 40) : kind,
    weight: fields.number('weight', { min: 0.0001, max: 1e6, fallback: 1 }),
  };
  const only = (...names: string[]): void =>
    fields.only(kind, ['kind', 'name', 'weight', ...names]);
  const spread = (): 'uniform' | 'zipf' => fields.choice('spread', ['uniform', 'zipf'], 'uniform');
  if (kind === 'check') {
    only('spread');
    return { ...common, kind, spread: spread() };
  }
  if (kind === 'batch_check') {
    only('spread', 'items');
    const items = fields.number('items', { min: 1, max: 10_000, fallback: 100, isWhole: true });
    return { ...common, kind, spread: spread(), items };
  }
  if (kind === 'list_objects') {
    only();
    return { ...common, kind };
  }
  if (kind === 'write') {
    only('tuples');
    const tuples = fields.number('tuples', { min: 1, max: 1000, fallback: 1, isWhole: true });
    return { ...common, kind, tuples };
  }
  only('path', 'body');
  const method = fields.choice('path', READING_METHODS);
  const body = fields.value('body');
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new PlanError(`${path}.body`, 'is no object');
  }
  return { ...common, kind, path: method, body: body as Record<string, unknown> };
}

function parseStage(value: unknown, path: string): Stage {
  const fields = new Fields(path, value, ['name', 'seconds', 'rate', 'callers']);
  const seconds = fields.number('seconds', { min: 0.1, max: SECONDS_MAX });
  const index = /\[(\d+)\]$/.exec(path)?.[1];
  const name = fields.has('name') ? fields.text('name', 40) : `stage ${Number(index) + 1}`;
  if (fields.has('rate') === fields.has('callers')) {
    throw new PlanError(path, 'has either rate or callers');
  }
  if (fields.has('callers')) {
    const callers = fields.number('callers', { min: 1, max: CALLERS_MAX, isWhole: true });
    return { name, seconds, callers };
  }
  const rate = fields.value('rate');
  if (typeof rate === 'object' && rate !== null && !Array.isArray(rate)) {
    const ramp = new Fields(`${path}.rate`, rate, ['from', 'to']);
    const bounds = { min: 0, max: RATE_MAX };
    return { name, seconds, from: ramp.number('from', bounds), to: ramp.number('to', bounds) };
  }
  const constant = fields.number('rate', { min: 0.01, max: RATE_MAX });
  return { name, seconds, from: constant, to: constant };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanError('', `is no JSON: ${(error as Error).message}`);
  }
}

type Bounds = {
  readonly min: number;
  readonly max: number;
  readonly fallback?: number;
  readonly isWhole?: boolean;
};

/** The fields of one object of the file. */
class Fields {
  readonly #path: string;
  readonly #object: Readonly<Record<string, unknown>>;

  constructor(path: string, value: unknown, known: readonly string[]) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new PlanError(path, 'is no object');
    }
    this.#path = path;
    this.#object = value as Record<string, unknown>;
    for (const name of Object.keys(this.#object)) {
      if (!known.includes(name)) {
        throw new PlanError(this.#of(name), `is none of ${known.join(', ')}`);
      }
    }
  }

  has(name: string): boolean {
    return this.#object[name] !== undefined;
  }

  value(name: string): unknown {
    return this.#object[name];
  }

  only(kind: string, names: readonly string[]): void {
    for (const name of Object.keys(this.#object)) {
      if (!names.includes(name)) throw new PlanError(this.#of(name), `is no field of ${kind}`);
    }
  }

  text(name: string, lengthMax: number): string {
    const value = this.#object[name];
    if (typeof value !== 'string' || value === '' || value.length > lengthMax) {
      throw new PlanError(this.#of(name), `is no text of 1 to ${lengthMax} characters`);
    }
    return value;
  }

  number(name: string, { min, max, fallback, isWhole = false }: Bounds): number {
    const value = this.#object[name] ?? fallback;
    const isFine = typeof value === 'number' && value >= min && value <= max;
    if (!isFine || (isWhole && !Number.isInteger(value))) {
      const kind = isWhole ? 'whole number' : 'number';
      throw new PlanError(this.#of(name), `is no ${kind} from ${min} to ${max}`);
    }
    return value;
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback?: T): T {
    const value = this.#object[name] ?? fallback;
    const choice = choices.find((one) => one === value);
    if (choice === undefined) {
      throw new PlanError(this.#of(name), `is none of ${choices.join(', ')}`);
    }
    return choice;
  }

  optional<T>(name: string, parse: (value: unknown, path: string) => T): T | undefined {
    const value = this.#object[name];
    return value === undefined ? undefined : parse(value, this.#of(name));
  }

  list<T>(
    name: string,
    countMax: number,
    parse: (value: unknown, path: string) => T,
  ): readonly T[] {
    const value = this.#object[name];
    if (!Array.isArray(value) || value.length === 0 || value.length > countMax) {
      throw new PlanError(this.#of(name), `is no list of 1 to ${countMax}`);
    }
    return value.map((one: unknown, i) => parse(one, `${this.#of(name)}[${i}]`));
  }

  #of(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }
}
