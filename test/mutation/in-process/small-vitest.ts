/**
 * What the tests import in the place of vitest when faults are tried in one process: it gathers them,
 * so that each can be run again and again. Vitest's own `expect` and `vi`; of the rest as much as the
 * tests use that are named in tests-of.ts.
 */
import * as real from 'vitest';

type Body = (...args: readonly unknown[]) => unknown;
type Hooks = { readonly before: Body[]; readonly after: Body[] };
/** A test with the hooks around it. */
export type GatheredTest = {
  readonly name: string;
  /** Path of the file that it is in. */
  readonly file: string;
  readonly body: () => unknown;
  readonly before: readonly Body[];
  readonly after: readonly Body[];
};

const POLLS_MAX = 400;

export const gathered: GatheredTest[] = [];
/** What to do when the test at work has ended, last first. */
export const finishers: Body[] = [];
/** The file that is loaded. */
let file = '';
const path: string[] = [];
const hooks: Hooks[] = [];

/** What is gathered from here on is of this file: hooks of the files before it are none of its own. */
export function beginFile(name: string): void {
  file = name;
  hooks.splice(0, hooks.length, { before: [], after: [] });
}

const bodyOf = (args: readonly unknown[]): Body => {
  const body = args.find((arg) => typeof arg === 'function');
  if (body === undefined) throw new Error('a test without a body');
  return body as Body;
};
const rowsOf = (table: readonly unknown[]): (readonly unknown[])[] =>
  table.map((row): readonly unknown[] => (Array.isArray(row) ? row : [row]));

function add(name: unknown, body: () => unknown): void {
  gathered.push({
    name: [...path, String(name)].join(' > '),
    file,
    body,
    before: hooks.flatMap((level) => level.before),
    after: hooks.flatMap((level) => level.after),
  });
}

const skip = (): void => {};

export const test = Object.assign(
  (name: unknown, ...args: readonly unknown[]) => add(name, () => bodyOf(args)({})),
  {
    each:
      (table: readonly unknown[]) =>
      (name: unknown, ...args: readonly unknown[]) => {
        const body = bodyOf(args);
        rowsOf(table).forEach((row, i) => add(`${String(name)} #${i}`, () => body(...row)));
      },
    skip,
    skipIf: (isSkipped: boolean) => (isSkipped ? skip : test),
    runIf: (isRun: boolean) => (isRun ? test : skip),
  },
);
export const it = test;

function group(name: unknown, body: () => unknown): void {
  path.push(String(name));
  hooks.push({ before: [], after: [] });
  body();
  hooks.pop();
  path.pop();
}

export const describe = Object.assign(
  (name: unknown, ...args: readonly unknown[]) => group(name, () => bodyOf(args)()),
  {
    each:
      (table: readonly unknown[]) =>
      (name: unknown, ...args: readonly unknown[]) => {
        const body = bodyOf(args);
        rowsOf(table).forEach((row, i) => group(`${String(name)} #${i}`, () => body(...row)));
      },
    skip,
    skipIf: (isSkipped: boolean) => (isSkipped ? skip : describe),
  },
);

export const beforeEach = (body: Body): unknown => hooks.at(-1)?.before.push(body);
export const afterEach = (body: Body): unknown => hooks.at(-1)?.after.push(body);
/** Each test is run by itself, so that what is made for all is made for each. */
export const beforeAll = beforeEach;
export const afterAll = afterEach;
export const onTestFinished = (body: Body): unknown => finishers.push(body);
export const inject = (): undefined => undefined;
export const { vi } = real;
/** Faked timers ask vitest for its settings, which a run of vitest has here. */
Object.assign(globalThis, { ['__vitest_worker__']: { config: { fakeTimers: {} } } });

/** `expect(await read())...`, until it holds. */
function polled(read: () => unknown, isNot: boolean): unknown {
  return new Proxy(
    {},
    {
      get: (_, matcher: string) => {
        if (matcher === 'not') return polled(read, !isNot);
        return async (...args: readonly unknown[]): Promise<void> => {
          for (let i = 0; ; i++) {
            try {
              const value = real.expect(await read());
              const wanted = (isNot ? value.not : value) as unknown as Record<string, Body>;
              await wanted[matcher]?.(...args);
              return;
            } catch (error) {
              if (i === POLLS_MAX) throw error;
              await new Promise((resolve) => setTimeout(resolve, 1));
            }
          }
        };
      },
    },
  );
}
export const expect = Object.assign(
  (value: unknown, message?: string) => real.expect(value, message),
  real.expect,
  { poll: (read: () => unknown) => polled(read, false) },
);
