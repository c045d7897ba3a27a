import type { Pool } from 'pg';
import { HeadRevisions } from '../../src/services/reads/head-revisions.ts';
import { ReadIndex, type ReadIndexOptions } from '../../src/services/reads/read-index.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import {
  type IndexParams,
  type IndexRow,
  readIndex,
} from '../../src/store/sql/reads/read-index.ts';

const silent = (): void => undefined;

/** Metrics that nobody looks at. */
export const UNCOUNTED: ReadIndexOptions['metrics'] = {
  answered: silent,
  failed: silent,
  stalled: silent,
  carried: silent,
  historyLost: silent,
};

/** Heads and an index that asks by `ask`, over as many connections as there are. */
export function indexOver(
  asks: readonly ((asks: readonly IndexParams[]) => Promise<readonly IndexRow[]>)[],
  options: Partial<ReadIndexOptions> & { readonly entriesMax?: number } = {},
): { readonly headRevisions: HeadRevisions; readonly index: ReadIndex } {
  const headRevisions =
    options.headRevisions ?? new HeadRevisions({ entriesMax: options.entriesMax ?? 100 });
  const index = new ReadIndex({
    clock: systemClock,
    headRevisions,
    connections: asks.map((ask) => ({ isUp: true, query: ask })),
    settingsVersionOf: () => 0,
    carry: silent,
    waitersMax: 100_000,
    metrics: UNCOUNTED,
    ...options,
  });
  return { headRevisions, index };
}

/** Over a pool of the test's. */
export function indexOverPool(
  pool: Pool,
  options: Parameters<typeof indexOver>[1] = {},
): ReturnType<typeof indexOver> {
  const ask = async (asks: readonly IndexParams[]): Promise<readonly IndexRow[]> => {
    const client = await pool.connect();
    try {
      return await readIndex(client, asks, 5_000);
    } finally {
      client.release();
    }
  };
  return indexOver([ask], options);
}

/** The row that says that the shard of an ask stands at `revision`. */
export function rowAt(at: number, revision: number, more: Partial<IndexRow> = {}): IndexRow {
  const head = { epoch: 1, revision, forkId: String(revision * 7), settingsVersion: 1 };
  return { at, ...head, forkIdAtKnown: '', changes: [], ...more };
}
