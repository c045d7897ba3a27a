import { packChange } from '../../model/packed-changes.ts';
import { type ShardKey, type TupleChange, subjectToColumns } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import { plainArray, textArray } from '../../store/postgres/array-literals.ts';
import {
  WRITE_GROUP_ARGUMENTS,
  type WriteGroupArguments,
  type WriteGroupHints,
  type WriteGroupRow,
} from '../../store/sql/writes/write-group.ts';
import type { WriteMeta } from '../ports.ts';
import type { UpdateMode } from './update-modes.ts';
import {
  deleteArguments,
  EFFECT_IF_STORED,
  EFFECT_NONE,
  EFFECT_SURE,
  type Final,
  insertArguments,
  MadeChanges,
  modeArguments,
  STEP_UPDATES,
} from './write-group-arguments.ts';

/** One request's writes to one shard: applied together or not at all, under a revision of its own. */
export type ShardWrite = {
  readonly shard: ShardKey;
  /** At least one; an identity at most once. */
  readonly updates: readonly TupleChange[];
  /** One for each update; absent: all are plain. Then it shares no tuple with another of its group (ModeGuard). */
  readonly modes?: readonly UpdateMode[] | undefined;
  /** Whether a version of the model that the write names has admitted its updates: WriteOptions. */
  readonly isByVersion?: boolean | undefined;
  readonly meta: WriteMeta;
  /** UUID made by this process: recognizes the write when its answer was lost. */
  readonly commitId: string;
  /** Decimal text of a random signed 64-bit number. */
  readonly forkId: string;
};

/** Result of a write. Without an effect, revision is the one reached before it. */
export type WriteResult = {
  readonly epoch: number;
  readonly revision: number;
  /** The change row's text, or null where the write had no effect. */
  readonly changes: string | null;
  /** Version of the project's settings under which it was committed. */
  readonly settingsVersion: number;
  /**
   * Position, from 1, of the update whose mode kept the write from being applied; see
   * `refusalOfModes` for 0.
   */
  readonly refusedAt?: number | undefined;
};

/** Arguments for the database, and what is needed to read its answer. */
export type PlannedGroup = {
  readonly values: (string | boolean)[];
  readonly hints: WriteGroupHints;
  /** Further arguments of gatehouse_write_if; undefined: no write has modes. */
  readonly modeValues: readonly string[] | undefined;
  readonly shardOfWrite: readonly number[];
  readonly changes: readonly (string | null)[];
  /** Effective writes of its shard up to each write; final unless the database decides effects. */
  readonly offsets: readonly number[];
};

/**
 * Arguments with which gatehouse_write applies `writes` in order, each as if it came alone. Effects
 * that depend only on earlier writes of the group are decided here: the database looks up the rest.
 * `rulesOf` returns the version of a project's rules against which its writes were checked.
 * `areNew`: whether the inserted tuples are expected not to be stored; it only selects how they are
 * written. Pure. Cost: O(updates), one map entry per identity.
 */
export function planGroup(
  writes: readonly ShardWrite[],
  rulesOf?: (projectId: string) => number,
  areNew?: boolean,
): PlannedGroup {
  const steps = planSteps(writes, rulesOf, areNew);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** `planGroup` in steps, each of at most one write of some hundred updates or one column of all of them. */
export function* planSteps(
  writes: readonly ShardWrite[],
  rulesOf: (projectId: string) => number = noRules,
  areNew = true,
): Generator<undefined, PlannedGroup> {
  const shards = new ShardTable(writes);
  const finals = new Map<string, Final>();
  const made = new MadeChanges();
  const offsets: number[] = [];
  const applied: string[] = [];
  const changes: (string | null)[] = [];
  const counts = Array.from({ length: shards.count + 1 }, () => 0);
  const forkIds = Array.from({ length: shards.count + 1 }, () => '0');
  let hasModes = false;
  for (const [index, write] of writes.entries()) {
    const shard = shards.positionOf[index] as number;
    const effects: number[] = [];
    const { modes } = write;
    if (modes !== undefined) hasModes = true;
    for (const update of write.updates) {
      const mode = modes?.[effects.length] ?? 'plain';
      effects.push(effectOf(finals, shard, index + 1, update, effects.length + 1, mode));
      if (effects.length % STEP_UPDATES === 0) yield;
    }
    const isUnsure = effects.includes(EFFECT_IF_STORED);
    const packed = isUnsure ? null : yield* packEffective(write.updates, effects);
    if (isUnsure) yield* made.add(index + 1, write.updates, effects);
    if (packed !== null) {
      counts[shard] = (counts[shard] as number) + 1;
      forkIds[shard] = write.forkId;
    }
    offsets.push(counts[shard] as number);
    applied.push(packed === null ? 'f' : 't');
    changes.push(packed);
  }
  const inserts = yield* insertArguments(finals);
  const values = [
    false,
    textArray(shards.sorted.map((key) => key.projectId)),
    textArray(shards.sorted.map((key) => key.tenantId)),
    plainArray(shards.sorted.map((key) => rulesOf(key.projectId))),
    plainArray(counts.slice(1)),
    plainArray(forkIds.slice(1)),
    plainArray(shards.positionOf),
    plainArray(writes.map((write) => write.commitId)),
    plainArray(writes.map((write) => write.forkId)),
    textArray(writes.map((write) => write.meta.rpc)),
    textArray(writes.map((write) => write.meta.actingUserId)),
    textArray(writes.map((write) => write.meta.requestId)),
    plainArray(offsets),
    plainArray(applied),
    textArray(changes),
    ...(yield* made.toArguments()),
    ...inserts,
    ...(yield* deleteArguments(finals)),
  ];
  assert(values.length === WRITE_GROUP_ARGUMENTS, 'arguments of gatehouse_write');
  const areLoneDeletes = made.areLoneDeletes && made.count === finals.size;
  const hints = { areNew, areLoneDeletes };
  const modeValues = hasModes ? modeArguments(finals) : undefined;
  return { values, hints, modeValues, shardOfWrite: shards.positionOf, changes, offsets };
}

function noRules(): number {
  return 0;
}

/** The same arguments for a group that may have been applied by an attempt whose answer was lost. */
export function argumentsOfResend(group: PlannedGroup): WriteGroupArguments {
  return [true, ...group.values.slice(1)];
}

/** Results by write of a group that was applied just now. */
export function readGroupResults(group: PlannedGroup, row: WriteGroupRow): WriteResult[] {
  assert(row.epochs !== null && row.bases !== null, 'row of a group');
  const settings = row.settings?.split(',') ?? [];
  const epochs = row.epochs.split(',');
  const bases = row.bases.split(',');
  const offsets = row.offsets?.split(',') ?? group.offsets;
  const effects = row.effects?.split(',');
  const refused = row.refused_at?.split(',');
  return group.shardOfWrite.map((shard, index) => {
    const changes = row.made_changes?.[index] ?? group.changes[index] ?? null;
    return {
      epoch: Number(epochs[shard - 1]),
      revision: Number(bases[shard - 1]) + Number(offsets[index]),
      changes: effects === undefined || effects[index] === '1' ? changes : null,
      settingsVersion: Number(settings[shard - 1] ?? 0),
      ...(refused === undefined || refused[index] === '0'
        ? {}
        : { refusedAt: Number(refused[index]) }),
    };
  });
}

/** The distinct shards of a group, sorted as the database sorts them (all ids are ASCII). */
class ShardTable {
  readonly sorted: readonly ShardKey[];
  /** Position by write, 1 is the first. */
  readonly positionOf: number[];

  constructor(writes: readonly ShardWrite[]) {
    const byKey = new Map<string, ShardKey>();
    const keys = writes.map(({ shard }) => {
      // Neither part can hold a NUL.
      const key = `${shard.projectId}\u0000${shard.tenantId}`;
      if (!byKey.has(key)) byKey.set(key, shard);
      return key;
    });
    const order = [...byKey.keys()].toSorted();
    const positions = new Map(order.map((key, index) => [key, index + 1]));
    this.sorted = order.map((key) => byKey.get(key) as ShardKey);
    this.positionOf = keys.map((key) => positions.get(key) as number);
  }

  get count(): number {
    return this.sorted.length;
  }
}

/** Decides an update's effect as far as the group determines it, and records its identity's new state. */
function effectOf(
  finals: Map<string, Final>,
  shard: number,
  write: number,
  update: TupleChange,
  at: number,
  mode: UpdateMode,
): number {
  const { tuple } = update;
  const subject = subjectToColumns(tuple.subject);
  const key = `${shard}\u0000${tuple.namespace}\u0000${tuple.objectId}\u0000${tuple.relation}\u0000${subject[0]}\u0000${subject[1]}\u0000${subject[2]}`;
  const before = finals.get(key);
  const isInsert = update.op === 'insert';
  finals.set(key, { isInsert, write, shard, tuple, subject, at, mode });
  if (mode !== 'plain') {
    assert(before === undefined, 'a write with modes shares no tuple with another of its group');
    return EFFECT_SURE; // unless the database finds what the mode asks about
  }
  if (isInsert) return EFFECT_SURE;
  if (before === undefined) return EFFECT_IF_STORED;
  return before.isInsert ? EFFECT_SURE : EFFECT_NONE;
}

function* packEffective(
  updates: readonly TupleChange[],
  effects: readonly number[],
): Generator<undefined, string | null> {
  const packed: string[] = [];
  for (const [index, update] of updates.entries()) {
    if (effects[index] !== EFFECT_SURE) continue;
    packed.push(packChange(update));
    if (packed.length % STEP_UPDATES === 0) yield;
  }
  return packed.length === 0 ? null : `[${packed.join(',')}]`;
}
