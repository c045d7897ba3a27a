import type { TupleReader } from '../../model/tuple-reader.ts';
import type { HotCaches } from './hot-check.ts';
import type { HotModel } from './hot-model.ts';
import { SLOT_OFFSET } from './membership-cache.ts';
import { ROW_COUNTS, ROW_ENTRIES, ROW_OPAQUE } from './object-cache.ts';

/**
 * Queries of one group: enough loads under way at once, and few enough to stay in the first cache. At 1.008 M tuples an
 * item of a batch takes 1,368 ns with groups of 16 and 1,623 without.
 */
export const READ_AHEAD_MAX = 16;

/** Checks of concrete users, as ids of the index. */
export type Queries = {
  /** Entities, 0 where nothing mentions them. */
  readonly objects: Uint32Array;
  /** Name ids, -1 where nothing mentions the name. */
  readonly relations: Int32Array;
  /** Entities, 0 where nothing mentions them. */
  readonly users: Uint32Array;
};

const states = new Int32Array(READ_AHEAD_MAX);
const homes = new Uint32Array(READ_AHEAD_MAX);
/** Positions to read; those of lists of ancestors are written over those of rows. */
const positions = new Uint32Array(READ_AHEAD_MAX);
const memberships = new Uint32Array(READ_AHEAD_MAX);
/** Words of a list of ancestors in one cache line of 64 bytes. */
const CACHE_LINE_WORDS = 16;
/** Sums of loads that no code reads, kept so that the loads are not optimized away. */
const sink = new Float64Array(1);

/**
 * Reads the rows of the objects, the first lists of ancestors above them and the users' memberships of a group
 * of queries, step by step for the whole group, so that the waits for memory overlap; a check on
 * its own waits for each in turn. The loops with the loads hold nothing else: what the processor
 * has under way at once is counted in instructions, and with the hashing among them most of the
 * gain is lost. What is not cached yet is left to the check. Source: as for `findEntities`, Chen et
 * al., ICDE 2004. Hot.
 */
export function readAhead(
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  queries: Queries,
  count: number,
): void {
  const lines = caches.objects.table.words;
  const { slots } = caches.memberships;
  const size = Math.min(count, READ_AHEAD_MAX);
  locate(reader, model, caches, queries, size);
  let sum = 0;
  for (let i = 0; i < size; i++) sum += lines[positions[i] as number] as number;
  for (let i = 0; i < size; i++) sum += slots[homes[i] as number] as number;

  const membershipCount = locateMemberships(slots, caches.memberships.arena.length, size);
  const ancestorCount = locateAncestors(caches, queries.objects, size);
  const { arena } = caches.memberships;
  const ancestors = caches.ancestors.table.words;
  for (let i = 0; i < ancestorCount; i++) sum += ancestors[positions[i] as number] as number;
  for (let i = 0; i < membershipCount; i++) sum += arena[memberships[i] as number] as number;
  for (let i = 0; i < ancestorCount; i++) {
    sum += ancestors[(positions[i] as number) + CACHE_LINE_WORDS] as number;
  }
  sink[0] = sum;
}

/** States, positions of the rows, and home slots of the users. */
function locate(
  reader: TupleReader,
  model: HotModel,
  caches: HotCaches,
  { objects, relations, users }: Queries,
  count: number,
): void {
  const { table } = caches.objects;
  for (let i = 0; i < count; i++) {
    const object = objects[i] as number;
    const relation = relations[i] as number;
    const isKnown = object !== 0 && relation > 0;
    const state = isKnown ? model.single(reader.namespaceOf(object), relation) : -1;
    states[i] = state;
    positions[i] = table.setOf(object, state);
    homes[i] = caches.memberships.homeOf(reader.userNodeOf(users[i] as number));
  }
}

/** Memberships of those users whose home slot holds one; mostly it is theirs. */
function locateMemberships(slots: Uint32Array, arenaLength: number, count: number): number {
  let found = 0;
  for (let i = 0; i < count; i++) {
    const offset = slots[(homes[i] as number) + SLOT_OFFSET] as number;
    if (offset < arenaLength) memberships[found++] = offset;
  }
  return found;
}

/** Positions of the lists of ancestors that lead on from the objects' rows. */
function locateAncestors(caches: HotCaches, objects: Uint32Array, count: number): number {
  const { table } = caches.objects;
  const lines = table.words;
  let found = 0;
  for (let i = 0; i < count; i++) {
    const state = states[i] as number;
    if (state <= 0) continue;
    const at = table.rowOf(objects[i] as number, state);
    if (at < 0) continue;
    const counts = lines[at + ROW_COUNTS] as number;
    if (counts === ROW_OPAQUE || counts >>> 24 === 0) continue;
    const above = (counts & 255) + ((counts >>> 7) & 510) + ((counts >>> 16) & 255);
    const child = at + ROW_ENTRIES + above;
    positions[found++] = caches.ancestors.table.setOf(
      lines[child] as number,
      lines[child + 1] as number,
    );
  }
  return found;
}
