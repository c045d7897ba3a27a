// Stores and compares ratios; yields nothing by itself.
import { readFileSync, writeFileSync } from 'node:fs';
import type { MicroResult } from './measure.ts';

const FILE = new URL('../baseline.json', import.meta.url);

type Stored = { readonly ratio: number; readonly noise: number };
export type Baseline = {
  readonly machine: object;
  readonly benches: Readonly<Record<string, Stored>>;
};

/** How a result stands to the stored one. */
export type Comparison = {
  readonly name: string;
  readonly ratio: number;
  readonly baselineRatio: number;
  /** Time now over time then, both in units of the reference: 1.2 is a fifth slower. */
  readonly change: number;
  /** Noise of both together; a change within it says nothing. */
  readonly noise: number;
  readonly verdict: 'within noise' | 'slower' | 'faster';
};

export function readBaseline(): Baseline {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Baseline;
}

/** Stores the ratios of `results`; benchmarks that were not run keep theirs. */
export function writeBaseline(results: readonly MicroResult[], machine: object): void {
  const stored = Object.entries(storedBenches());
  const measured = results.map(({ name, ratio, noise }) => [name, { ratio, noise }] as const);
  const benches = Object.fromEntries([...stored, ...measured]);
  writeFileSync(FILE, `${JSON.stringify({ machine, benches }, null, 2)}\n`);
}

function storedBenches(): Baseline['benches'] {
  try {
    return readBaseline().benches;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

/** Results that have a stored counterpart, next to it. */
export function compareWithBaseline(
  results: readonly MicroResult[],
  baseline: Baseline,
): Comparison[] {
  return results.flatMap(({ name, ratio, noise }) => {
    const stored = baseline.benches[name];
    if (stored === undefined) return [];
    const change = ratio / stored.ratio;
    const both = noise + stored.noise;
    const verdict = change > 1 + both ? 'slower' : change < 1 / (1 + both) ? 'faster' : undefined;
    return [
      {
        name,
        ratio,
        baselineRatio: stored.ratio,
        change: Number(change.toFixed(3)),
        noise: Number(both.toFixed(3)),
        verdict: verdict ?? 'within noise',
      },
    ];
  });
}
