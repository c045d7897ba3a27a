import { CLOSURE_NONE, SUMMARY_OPEN } from './closure-cache.ts';
import type { HotCaches } from './hot-check.ts';
import { LineTable } from './line-table.ts';
import { LINE_COUNTS, LINE_OPAQUE } from './object-cache.ts';

const nothing = new LineTable(5, 0);
const opaque = new Uint32Array(LINE_COUNTS + 1).fill(LINE_OPAQUE);

/** In the place of caches that are off: what each says of everything that it does not hold. */
export const ABSENT_CACHES: HotCaches = {
  closures: {
    arena: new Uint32Array(0),
    slots: new Uint32Array(4),
    homeOf: () => 0,
    closureOf: () => CLOSURE_NONE,
    summaryOf: () => SUMMARY_OPEN,
  },
  objects: { table: nothing, lines: opaque, lineOf: () => 0 },
  chains: { table: nothing, lines: opaque, chainOf: () => 0 },
};
