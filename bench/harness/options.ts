import { existsSync } from 'node:fs';
import { join } from 'node:path';

const numberOf = (name: string, otherwise: number): number =>
  Number(process.env[`BENCH_${name}`] ?? otherwise);

/** What `npm run bench` passes on to a benchmark: its flags, in the environment of the program. */
export const OPTIONS = {
  /** Seconds of one turn. */
  seconds: numberOf('SECONDS', 2),
  /** Counted turns of each contestant. */
  rounds: numberOf('ROUNDS', 7),
  /** Size of the data set: 1 is 101,000 tuples. */
  scale: numberOf('SCALE', 0.1),
} as const;

/** Seed of the data set in every benchmark. */
export const SEED = 7;

/** Checkouts to compare, this one first: the arguments are directories of others. Errors: throws for what is no checkout. */
export function checkouts(): readonly string[] {
  const others = process.argv.slice(2);
  const wrong = others.find((path) => !existsSync(join(path, 'src/main.ts')));
  if (wrong !== undefined) throw new Error(`${wrong} is no checkout: it has no src/main.ts`);
  return ['.', ...others];
}

/** Prints one JSON line, from which a row of a table is made. */
export function report(row: Readonly<Record<string, unknown>>): void {
  const rounded = (_key: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  process.stdout.write(`${JSON.stringify(row, rounded)}\n`);
}

/** The least value that a share `q` of the values does not exceed (nearest rank); NaN of none. */
export function quantile(values: readonly number[], q = 0.5): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(sorted.length * q)) - 1] ?? Number.NaN;
}

/** A number among the arguments. Errors: throws when it is none above 0. */
export function numberArgument(index: number, otherwise: number): number {
  const text = process.argv[2 + index];
  const value = Number(text ?? otherwise);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new Error(`argument ${index + 1} is no number above 0: ${text}`);
}
