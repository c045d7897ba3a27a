import type { HotCaches } from './hot-check.ts';
import { MEMBERSHIPS_NONE, SUMMARY_OPEN } from './membership-cache.ts';
import { ROW_COUNTS, ROW_OPAQUE } from './object-cache.ts';
import { ObjectTable } from './object-table.ts';

const nothing = new ObjectTable(5, 0);
const opaque = new Uint32Array(ROW_COUNTS + 1).fill(ROW_OPAQUE);

/** In the place of caches that are off: what each says of everything that it does not hold. */
export const ABSENT_CACHES: HotCaches = {
  memberships: {
    arena: new Uint32Array(0),
    slots: new Uint32Array(4),
    homeOf: () => 0,
    membershipsOf: () => MEMBERSHIPS_NONE,
    summaryOf: () => SUMMARY_OPEN,
  },
  objects: { table: nothing, lines: opaque, rowOf: () => 0 },
  ancestors: { table: nothing, lines: opaque, ancestorsOf: () => 0 },
};
