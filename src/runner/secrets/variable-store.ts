import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import {
  environmentKey,
  environmentProblem,
  isDefaultEnvironment,
  nameProblem,
  valueProblem,
} from './names.ts';
import { readPlainFile } from './plain-file.ts';
import {
  ENTRIES_PER_ENVIRONMENT_MAX,
  ENVIRONMENTS_MAX,
  VARIABLES_BYTES_MAX,
} from './secret-limits.ts';

export type Variable = {
  readonly name: string;
  readonly value: string;
  readonly environment: string;
  /** ISO 8601. */
  readonly updatedAt: string;
};

const FILE_NAME = 'variables.json';

/** `.runner/variables.json`: plain and readable; written atomically, kept in memory once read. */
export class VariableStore {
  readonly #path: string;
  #opened: Promise<void> | undefined;
  #variables = new Map<string, Variable>();

  constructor(stateDir: string) {
    this.#path = join(stateDir, FILE_NAME);
  }

  /** Errors: BACKEND_UNAVAILABLE for a file that is not of this form; it is never overwritten. */
  async open(): Promise<void> {
    this.#opened ??= this.#read();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  /** By environment, then name. */
  list(): readonly Variable[] {
    return [...this.#variables.entries()]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([, variable]) => variable);
  }

  find(environment: string, name: string): Variable | undefined {
    return this.#variables.get(keyOf(environment, name));
  }

  /** What a job of this environment sees, environment over default. At most 256 KB, which `change` assures. */
  merged(environment: string): Readonly<Record<string, string>> {
    return mergedOf(this.#variables.values(), environmentKey(environment));
  }

  /** All changes or none. Errors: BACKEND_UNAVAILABLE, INVALID_VALUE above 256 KB a run, RESULT_TOO_LARGE, DISK_FULL, STORE_UNAVAILABLE. */
  async change(puts: readonly Variable[], removals: readonly Variable[] = []): Promise<void> {
    await this.open();
    const next = new Map(this.#variables);
    for (const { environment, name } of removals) next.delete(keyOf(environment, name));
    for (const put of puts) next.set(keyOf(put.environment, put.name), put);
    assertWithinLimits([...next.values()]);
    const variables = [...next.entries()]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([, variable]) => variable);
    await writeFileAtomic(
      this.#path,
      `${JSON.stringify({ version: 1, variables }, null, 2)}\n`,
      0o600,
    );
    this.#variables = next;
  }

  async #read(): Promise<void> {
    const text = await readPlainFile(this.#path, 'variables');
    if (text === undefined) return;
    const variables = parseFile(text);
    assertWithinLimits(variables);
    this.#variables = new Map(
      variables.map((variable) => [keyOf(variable.environment, variable.name), variable]),
    );
  }
}

function keyOf(environment: string, name: string): string {
  return `${environmentKey(environment)}:${name}`;
}

function mergedOf(variables: Iterable<Variable>, key: string): Readonly<Record<string, string>> {
  const general: Record<string, string> = {};
  const specific: Record<string, string> = {};
  for (const { environment, name, value } of variables) {
    if (environmentKey(environment) === key) specific[name] = value;
    else if (isDefaultEnvironment(environment)) general[name] = value;
  }
  return { ...general, ...specific };
}

function assertWithinLimits(variables: readonly Variable[]): void {
  const counts = new Map<string, number>();
  for (const { environment } of variables) {
    const key = environmentKey(environment);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  if (
    counts.size > ENVIRONMENTS_MAX ||
    [...counts.values()].some((count) => count > ENTRIES_PER_ENVIRONMENT_MAX)
  ) {
    throw new AppError(
      'RESULT_TOO_LARGE',
      `there are at most ${ENVIRONMENTS_MAX} environments of ${ENTRIES_PER_ENVIRONMENT_MAX} variables`,
      { field: 'name' },
    );
  }
  for (const key of counts.keys()) {
    const bytes = Object.entries(mergedOf(variables, key)).reduce(
      (sum, [name, value]) => sum + name.length + Buffer.byteLength(value),
      0,
    );
    if (bytes > VARIABLES_BYTES_MAX) {
      throw new AppError(
        'INVALID_VALUE',
        `the variables of a run have at most ${VARIABLES_BYTES_MAX} bytes together`,
        { field: 'value' },
      );
    }
  }
}

function parseFile(text: string): readonly Variable[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw unavailable('variables.json is no JSON', error);
  }
  const { version, variables } = (parsed ?? {}) as { version?: unknown; variables?: unknown };
  if (version !== 1 || !Array.isArray(variables) || !variables.every(isVariable)) {
    throw unavailable('variables.json has another form than version 1');
  }
  return variables;
}

function isVariable(value: unknown): value is Variable {
  if (typeof value !== 'object' || value === null) return false;
  const variable = value as Partial<Record<keyof Variable, unknown>>;
  return (
    typeof variable.environment === 'string' &&
    environmentProblem(variable.environment) === undefined &&
    typeof variable.name === 'string' &&
    nameProblem(variable.name) === undefined &&
    typeof variable.value === 'string' &&
    valueProblem(variable.value, true) === undefined &&
    typeof variable.updatedAt === 'string'
  );
}

function unavailable(text: string, cause?: unknown): AppError {
  return new AppError('BACKEND_UNAVAILABLE', text, { backend: 'variables' }, cause);
}
