import { packChange } from '../../model/packed-changes.ts';
import {
  type SubjectColumns,
  type TupleChange,
  subjectToColumns,
} from '../../model/relation-tuple.ts';
import { plainArray, textArray } from '../../store/postgres/array-literals.ts';
import { NUMBER_OF_MODE, type UpdateMode } from './update-modes.ts';

/** The last update of an identity within a group. */
export type Final = {
  isInsert: boolean;
  /** Position of the write, 1 is the first. */
  write: number;
  shard: number;
  tuple: TupleChange['tuple'];
  subject: SubjectColumns;
  /** Position of the update in its write, 1 is the first. */
  at: number;
  mode: UpdateMode;
};

const NO_VALUES = '{}';

/** Effects of an update, as gatehouse_write takes them. */
export const EFFECT_NONE = 0;
export const EFFECT_SURE = 1;
export const EFFECT_IF_STORED = -1;

/** Updates that one step handles. */
export const STEP_UPDATES = 256;

/** The g_ arrays: every update of the writes whose effect the database decides. */
export class MadeChanges {
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

  /** Adds the updates of a write; each has its effect. */
  *add(
    write: number,
    updates: readonly TupleChange[],
    effects: readonly number[],
  ): Generator<undefined, void> {
    for (const [index, update] of updates.entries()) {
      this.#write.push(write);
      this.#effect.push(effects[index] as number);
      if (effects[index] !== EFFECT_IF_STORED) this.areLoneDeletes = false;
      this.#packed.push(packChange(update));
      pushIdentity(this.#identity, update.tuple, subjectToColumns(update.tuple.subject));
      if (this.#write.length % STEP_UPDATES === 0) yield;
    }
  }

  /** The literals. */
  *toArguments(): Generator<undefined, string[]> {
    const made = [plainArray(this.#write), plainArray(this.#effect), textArray(this.#packed)];
    return [...made, ...(yield* textArrays(this.#identity))];
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

/** One literal a step. */
function* textArrays(columns: readonly string[][]): Generator<undefined, string[]> {
  const literals: string[] = [];
  for (const column of columns) {
    if (column.length >= STEP_UPDATES) yield;
    literals.push(textArray(column));
  }
  return literals;
}

/** Arguments of the tuples that a group leaves inserted. */
export function* insertArguments(finals: Map<string, Final>): Generator<undefined, string[]> {
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
    if (writes.length % STEP_UPDATES === 0) yield;
  }
  return [
    plainArray(writes),
    ...(yield* textArrays(identity)),
    // Shorter arrays are filled with nulls.
    hasExpiry ? plainArray(expires) : NO_VALUES,
    hasCondition ? textArray(conditions) : NO_VALUES,
    hasCondition ? textArray(parameters) : NO_VALUES,
  ];
}

/** Positions and modes of the inserts and of the deletes, in the order of their arguments. */
export function modeArguments(finals: Map<string, Final>): string[] {
  const all = [...finals.values()];
  const inserts = all.filter(({ isInsert }) => isInsert);
  const deletes = all.filter(({ isInsert }) => !isInsert);
  const modes = (list: readonly Final[]): string =>
    plainArray(list.map(({ mode }) => NUMBER_OF_MODE[mode]));
  const positions = (list: readonly Final[]): string => plainArray(list.map(({ at }) => at));
  return [
    positions(inserts),
    modes(inserts),
    plainArray(deletes.map(({ write }) => write)),
    positions(deletes),
    modes(deletes),
  ];
}

/** Arguments of the tuples that a group leaves deleted. */
export function* deleteArguments(finals: Map<string, Final>): Generator<undefined, string[]> {
  const shards: number[] = [];
  const identity: string[][] = [[], [], [], [], [], []];
  for (const final of finals.values()) {
    if (final.isInsert) continue;
    shards.push(final.shard);
    pushIdentity(identity, final.tuple, final.subject);
    if (shards.length % STEP_UPDATES === 0) yield;
  }
  return [plainArray(shards), ...(yield* textArrays(identity))];
}
