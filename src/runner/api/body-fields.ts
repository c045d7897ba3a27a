import { AppError } from '../../shared/app-error.ts';
import { meant } from '../../shared/text/nearest-name.ts';

const NOWHERE: ReadonlyMap<string, string> = new Map();

/**
 * Strict reading of a JSON body: every field is fetched by name and type, then `end` refuses what
 * nobody asked for. Messages name the field with its path and never its value.
 */
export class BodyFields {
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #path: string;
  readonly #read = new Set<string>();

  /**
   * `path` is '' for the body itself, else `sandbox.`; an absent body counts as one without fields.
   * Errors: INVALID_REQUEST unless `value` is an object.
   */
  constructor(value: unknown, path = '') {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (value !== undefined && !isObject) {
      const name = path === '' ? 'the body' : path.slice(0, -1);
      throw new AppError('INVALID_REQUEST', `${name} must be a JSON object`, {
        field: path === '' ? '' : path.slice(0, -1),
      });
    }
    this.#values = new Map(Object.entries(value ?? {}));
    this.#path = path;
  }

  /** Text, undefined when the field is absent. Errors: INVALID_REQUEST for another type or too long. */
  text(name: string, lengthMax: number): string | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'string') throw this.#wrong(name, 'must be a string');
    if (value.length > lengthMax) {
      throw this.#wrong(name, `must have at most ${lengthMax} characters`);
    }
    return value;
  }

  /** Text that must be there and not empty. */
  requiredText(name: string, lengthMax: number): string {
    const value = this.text(name, lengthMax);
    if (value === undefined) throw this.#wrong(name, 'is required');
    if (value === '') throw this.#wrong(name, 'must not be empty');
    return value;
  }

  /** One of `values`. */
  choice<const V extends string>(name: string, values: readonly V[]): V | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    const found = values.find((candidate) => candidate === value);
    if (found === undefined) throw this.#wrong(name, `must be one of ${values.join(', ')}`);
    return found;
  }

  flag(name: string): boolean | undefined {
    const value = this.#take(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.#wrong(name, 'must be true or false');
  }

  /** A list of non-empty texts. */
  texts(name: string, countMax: number, lengthMax: number): readonly string[] | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw this.#wrong(name, 'must be a list of strings');
    if (value.length > countMax) throw this.#wrong(name, `must have at most ${countMax} entries`);
    return value.map((entry: unknown, index) => {
      if (typeof entry === 'string' && entry !== '' && entry.length <= lengthMax) return entry;
      throw this.#wrong(`${name}[${index}]`, `must be a string of 1 to ${lengthMax} characters`);
    });
  }

  /** All fields, each a text. */
  allTexts(countMax: number, lengthMax: number): Readonly<Record<string, string>> {
    return this.#every(countMax, (name) => this.text(name, lengthMax) ?? '');
  }

  /** All fields, each a list of non-empty texts. */
  listsOfTexts(countMax: number, lengthMax: number): Readonly<Record<string, readonly string[]>> {
    return this.#every(countMax, (name) => this.texts(name, countMax, lengthMax) ?? []);
  }

  #every<V>(countMax: number, read: (name: string) => V): Readonly<Record<string, V>> {
    const names = [...this.#values.keys()];
    const [first = ''] = names;
    if (names.length > countMax) throw this.#wrong(first, `is one of more than ${countMax}`);
    return Object.fromEntries(names.map((name) => [name, read(name)]));
  }

  /** Whatever is there, for a reader of its own. */
  any(name: string): unknown {
    return this.#take(name);
  }

  /** An object of its own fields; undefined when absent. */
  object(name: string): BodyFields | undefined {
    const value = this.#take(name);
    return value === undefined ? undefined : new BodyFields(value, `${this.#path}${name}.`);
  }

  /**
   * Errors: INVALID_REQUEST for the first field that was not read. `elsewhere`: where, with its path, a field of
   * that name belongs.
   */
  end(elsewhere: ReadonlyMap<string, string> = NOWHERE): void {
    for (const name of this.#values.keys()) {
      if (this.#read.has(name)) continue;
      const place = elsewhere.get(name);
      const hint = place === undefined ? meant(name, this.#read) : ` here; it is ${place}`;
      throw this.#wrong(name, `no such field${hint}`);
    }
  }

  /** A field that is null counts as present: null is a value of no field. */
  #take(name: string): unknown {
    this.#read.add(name);
    return this.#values.get(name);
  }

  #wrong(name: string, problem: string): AppError {
    // Names come from the caller and may be of any length.
    const field = `${this.#path}${name}`.slice(0, 200);
    return new AppError('INVALID_REQUEST', `${field}: ${problem}`, { field });
  }
}
