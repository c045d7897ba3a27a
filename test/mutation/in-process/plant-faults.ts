import { createInstrumenter } from '@stryker-mutator/instrumenter';
import { strykerPlugins as assertions } from '../ignore-assertions.ts';
import { strykerPlugins as messages } from '../ignore-messages.ts';
import type { Mutant } from '../judge.ts';

/** A fault of a file; its `status` is still to be found out, unless it is 'Ignored'. */
export type Fault = Mutant & { readonly id: string };
/** The code holds all of them; which one is at work is said by `__stryker__.activeMutant`. */
type Planted = { readonly code: string; readonly faults: readonly Fault[] };

const silent = {
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  isDebugEnabled: () => false,
};

/** As much of Stryker's container of parts as its instrumenter asks for. */
class Parts {
  readonly #values = new Map<string, unknown>([['logger', silent]]);

  provideValue(name: string, value: unknown): this {
    this.#values.set(name, value);
    return this;
  }

  injectClass<T>(made: { readonly inject: readonly string[]; new (...parts: unknown[]): T }): T {
    return new made(...made.inject.map((name) => this.#values.get(name)));
  }
}

/** The faults that Stryker plants in a file, or in lines FROM-TO of it (all when ''). */
export async function plantFaults(file: string, source: string, lines: string): Promise<Planted> {
  const [from = 0, to = 0] = lines.split('-').map(Number);
  const range = {
    start: { line: from - 1, column: 0 },
    end: { line: to - 1, column: Number.MAX_SAFE_INTEGER },
  };
  const instrumenter = createInstrumenter(new Parts() as never);
  const { files, mutants } = await instrumenter.instrument(
    [{ name: file, mutate: lines === '' ? true : [range], content: source }],
    {
      plugins: null,
      excludedMutations: [],
      ignorers: [...assertions, ...messages].map(({ value }) => value as never),
    },
  );
  const faults = mutants.map(({ id, status, replacement, location: { start, end } }) => ({
    id,
    fileName: file,
    status: status ?? 'Pending',
    replacement,
    // Stryker's lines and columns begin with 0 here.
    location: {
      start: { line: start.line + 1, column: start.column + 1 },
      end: { line: end.line + 1, column: end.column + 1 },
    },
  }));
  return { code: files[0]?.content ?? '', faults };
}
