import { packChange } from '../model/packed-changes.ts';
import {
  type ShardKey,
  type SubjectColumns,
  type TupleChange,
  subjectToColumns,
} from '../model/relation-tuple.ts';
import { assert } from '../shared/assert.ts';
import {
  WRITE_GROUP_ARGUMENTS,
  type WriteGroupArguments,
  type WriteGroupHints,
  type WriteGroupRow,
  plainArray,
  textArray,
} from '../store/sql/write-group.ts';
import type { WriteMeta } from './ports.ts';

/** One request's writes to one shard: applied together or not at all, under a seq of its own. */
export type ShardWrite = {
  readonly shard: ShardKey;
  /** At least one; an identity at most once. */
  readonly updates: readonly TupleChange[];
  readonly meta: WriteMeta;
  /** UUID made by this process: recognizes the write when its answer was lost. */
  readonly commitId: string;
  /** Decimal text of a random signed 64-bit number. */
  readonly stamp: string;
};

/** What became of a write. Without an effect, seq is the one reached before it. */
export type WriteResult = {
  readonly epoch: number;
  readonly seq: number;
  /** The change row's text, or null where the write had no effect. */
  readonly changes: string | null;
  /** Of the project's settings, under which it was committed. */
  readonly settingsVersion: number;
};

/** Arguments for the database, and what is needed to read its answer. */
export type PlannedGroup = {
  readonly values: (string | boolean)[];
  readonly hints: WriteGroupHints;
  readonly shardOfWrite: readonly number[];
  readonly changes: readonly (string | null)[];
  /** Effective writes of its shard up to each write; final unless the database decides effects. */
  readonly offsets: readonly number[];
};

/** The last update of an identity within a group. */
type Final = {
  isInsert: boolean;
  /** Position of the write, 1 is the first. */
  write: number;
  shard: number;
  tuple: TupleChange['tuple'];
  subject: SubjectColumns;
};

const NO_VALUES = '{}';

/** Effects of an update, as gatehouse_write takes them. */
const EFFECT_NONE = 0;
const EFFECT_SURE = 1;
const EFFECT_IF_STORED = -1;

/**
 * Arguments with which gatehouse_write applies `writes` in order, each as if it came alone. Effects
 * that depend only on earlier writes of the group are decided here: the database looks up the rest. `rulesOf` is the
 * version of a project's rules by which its writes were looked at; `areNew` whether what is inserted is expected not to be
 * stored: only how it is done depends on it.
 * Pure. Cost: O(updates), one map entry per identity.
 */
export function planGroup(
  writes: readonly ShardWrite[],
  rulesOf: (projectId: string) => number = noRules,
  areNew = true,
): PlannedGroup {
  const shards = new ShardTable(writes);
  const finals = new Map<string, Final>();
  const made = new MadeChanges();
  const offsets: number[] = [];
  const applied: string[] = [];
  const changes: (string | null)[] = [];
  const counts = Array.from({ length: shards.count + 1 }, () => 0);
  const stamps = Array.from({ length: shards.count + 1 }, () => '0');
  writes.forEach((write, index) => {
    const shard = shards.positionOf[index] as number;
    const effects = write.updates.map((update) => effectOf(finals, shard, index + 1, update));
    const isUnsure = effects.includes(EFFECT_IF_STORED);
    const packed = isUnsure ? null : packEffective(write.updates, effects);
    if (isUnsure) made.add(index + 1, write.updates, effects);
    if (packed !== null) {
      counts[shard] = (counts[shard] as number) + 1;
      stamps[shard] = write.stamp;
    }
    offsets.push(counts[shard] as number);
    applied.push(packed === null ? 'f' : 't');
    changes.push(packed);
  });
  const values = [
    false,
    textArray(shards.sorted.map((key) => key.projectId)),
    textArray(shards.sorted.map((key) => key.tenantId)),
    plainArray(shards.sorted.map((key) => rulesOf(key.projectId))),
    plainArray(counts.slice(1)),
    plainArray(stamps.slice(1)),
    plainArray(shards.positionOf),
    plainArray(writes.map((write) => write.commitId)),
    plainArray(writes.map((write) => write.stamp)),
    textArray(writes.map((write) => write.meta.rpc)),
    textArray(writes.map((write) => write.meta.actingUserId)),
    textArray(writes.map((write) => write.meta.requestId)),
    plainArray(offsets),
    plainArray(applied),
    textArray(changes),
    ...made.toArguments(),
    ...insertArguments(finals),
    ...deleteArguments(finals),
  ];
  assert(values.length === WRITE_GROUP_ARGUMENTS, 'arguments of gatehouse_write');
  const areLoneDeletes = made.areLoneDeletes && made.count === finals.size;
  const hints = { areNew, areLoneDeletes };
  return { values, hints, shardOfWrite: shards.positionOf, changes, offsets };
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
  return group.shardOfWrite.map((shard, index) => {
    const changes = group.changes[index] ?? row.made_changes?.[index] ?? null;
    return {
      epoch: Number(epochs[shard - 1]),
      seq: Number(bases[shard - 1]) + Number(offsets[index]),
      changes: effects === undefined || effects[index] === '1' ? changes : null,
      settingsVersion: Number(settings[shard - 1] ?? 0),
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

/** Decides an update's effect as far as the group tells, and records its identity's new state. */
function effectOf(
  finals: Map<string, Final>,
  shard: number,
  write: number,
  update: TupleChange,
): number {
  const { tuple } = update;
  const subject = subjectToColumns(tuple.subject);
  const key = `${shard}\u0000${tuple.namespace}\u0000${tuple.objectId}\u0000${tuple.relation}\u0000${subject[0]}\u0000${subject[1]}\u0000${subject[2]}`;
  const before = finals.get(key);
  const isInsert = update.op === 'insert';
  finals.set(key, { isInsert, write, shard, tuple, subject });
  if (isInsert) return EFFECT_SURE;
  if (before === undefined) return EFFECT_IF_STORED;
  return before.isInsert ? EFFECT_SURE : EFFECT_NONE;
}

function packEffective(updates: readonly TupleChange[], effects: readonly number[]): string | null {
  const effective = updates.filter((_, index) => effects[index] === EFFECT_SURE);
  return effective.length === 0 ? null : `[${effective.map(packChange).join(',')}]`;
}

/** The g_ arrays: every update of the writes whose effect the database decides. */
class MadeChanges {
  readonly #write: number[] = [];
  readonly #effect: number[] = [];
  readonly #packed: string[] = [];
  readonly #identity: string[][] = [[], [], [], [], [], []];
  /** Whether nothing was added but deletes that the database decides. */
  areLoneDeletes = true;

  /** Updates that were added. */
  get count(): number {
    return this.#write.length;
  }

  add(write: number, updates: readonly TupleChange[], effects: readonly number[]): void {
    updates.forEach((update, index) => {
      this.#write.push(write);
      this.#effect.push(effects[index] as number);
      if (effects[index] !== EFFECT_IF_STORED) this.areLoneDeletes = false;
      this.#packed.push(packChange(update));
      pushIdentity(this.#identity, update.tuple, subjectToColumns(update.tuple.subject));
    });
  }

  toArguments(): string[] {
    return [
      plainArray(this.#write),
      plainArray(this.#effect),
      textArray(this.#packed),
      ...this.#identity.map(textArray),
    ];
  }
}

function pushIdentity(
  columns: string[][],
  tuple: TupleChange['tuple'],
  subject: SubjectColumns,
): void {
  columns[0]?.push(tuple.namespace);
  columns[1]?.push(tuple.objectId);
  columns[2]?.push(tuple.relation);
  columns[3]?.push(subject[0]);
  columns[4]?.push(subject[1]);
  columns[5]?.push(subject[2]);
}

function insertArguments(finals: Map<string, Final>): string[] {
  const writes: number[] = [];
  const identity: string[][] = [[], [], [], [], [], []];
  const expires: (string | null)[] = [];
  const conditions: (string | null)[] = [];
  const parameters: (string | null)[] = [];
  let hasExpiry = false;
  let hasCondition = false;
  for (const final of finals.values()) {
    if (!final.isInsert) continue;
    writes.push(final.write);
    pushIdentity(identity, final.tuple, final.subject);
    const { expiresAtUs, conditionName } = final.tuple;
    if (expiresAtUs !== undefined) hasExpiry = true;
    if (conditionName !== undefined) hasCondition = true;
    expires.push(expiresAtUs?.toString() ?? null);
    conditions.push(conditionName ?? null);
    parameters.push(final.tuple.conditionParams ?? null);
  }
  return [
    plainArray(writes),
    ...identity.map(textArray),
    // Shorter arrays are filled with nulls.
    hasExpiry ? plainArray(expires) : NO_VALUES,
    hasCondition ? textArray(conditions) : NO_VALUES,
    hasCondition ? textArray(parameters) : NO_VALUES,
  ];
}

function deleteArguments(finals: Map<string, Final>): string[] {
  const shards: number[] = [];
  const identity: string[][] = [[], [], [], [], [], []];
  for (const final of finals.values()) {
    if (final.isInsert) continue;
    shards.push(final.shard);
    pushIdentity(identity, final.tuple, final.subject);
  }
  return [plainArray(shards), ...identity.map(textArray)];
}
