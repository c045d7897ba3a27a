import type { AuthzReason } from '../../model/reasons.ts';
import {
  subjectToColumns,
  type TupleChange,
  tupleIdentity,
  type TupleKey,
} from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';

/**
 * Condition of an update on its stored tuple, expired ones included. `plain`: none. For an insert,
 * `absent`: nothing is stored; `identical`: nothing is, or a tuple with the same expiry and
 * condition, which stays as it is. For a delete, `present`: a tuple is stored.
 */
export type UpdateMode = 'plain' | 'absent' | 'identical' | 'present';

/** Numbers of gatehouse_write_if (migrations/0007_expected_modes.sql). */
export const NUMBER_OF_MODE: Readonly<Record<UpdateMode, number>> = {
  plain: 0,
  absent: 1,
  identical: 2,
  present: 3,
};

/** Demands of a write besides its updates. */
export type WriteOptions = {
  /** One for each update; absent: all are plain. */
  readonly modes?: readonly UpdateMode[] | undefined;
  /**
   * The updates were admitted by a version of the model that the write names (VersionAdmission): where the project ignores what the
   * model in force does not admit, that one need not admit them.
   */
  readonly isByVersion?: boolean | undefined;
};

/** A write as far as its modes go. */
export type ModedWrite = {
  readonly updates: readonly TupleChange[];
  /** One for each update; absent: all are plain. */
  readonly modes?: readonly UpdateMode[] | undefined;
};

/**
 * Which writes of a shard may share a group: one with modes shares no tuple with another, so that what it asks does not
 * depend on whether that other is refused. Cost: O(updates) for each write.
 */
export class ModeGuard {
  readonly #touched = new Set<string>();
  readonly #asked = new Set<string>();

  /** `taken` are in the group already; none of them has modes. */
  constructor(taken: readonly ModedWrite[]) {
    for (const { updates } of taken) {
      for (const { tuple } of updates) this.#touched.add(tupleIdentity(tuple));
    }
  }

  /** Whether the next write may join; then it has joined. */
  admits({ updates, modes }: ModedWrite): boolean {
    const identities = updates.map(({ tuple }) => tupleIdentity(tuple));
    const apart = modes === undefined ? this.#asked : this.#touched;
    if (identities.some((identity) => apart.has(identity))) return false;
    for (const identity of identities) {
      this.#touched.add(identity);
      if (modes !== undefined) this.#asked.add(identity);
    }
    return true;
  }
}

/** Why a mode was not met, by the mode. */
const REFUSALS: Readonly<Record<UpdateMode, readonly [reason: AuthzReason, text: string]>> = {
  plain: ['INTERNAL', 'asks nothing'],
  absent: ['TUPLE_EXISTS', 'is stored already'],
  identical: ['TUPLE_DIFFERS', 'is stored with another expiry or condition'],
  present: ['TUPLE_MISSING', 'is not stored'],
};

/**
 * The refusal of a write whose update at `refusedAt` (from 1) was not to be: TUPLE_EXISTS, TUPLE_DIFFERS or TUPLE_MISSING with the
 * field and the tuple's key. 0: nothing was written, and why is not known any more, which is STORE_UNAVAILABLE.
 */
export function refusalOfModes({ updates, modes }: ModedWrite, refusedAt: number): AppError {
  const update = updates[refusedAt - 1];
  if (update === undefined) {
    return new AppError<AuthzReason>(
      'STORE_UNAVAILABLE',
      'the connection to the database was lost: nothing was written, and it may be sent again',
    );
  }
  const [reason, text] = REFUSALS[modes?.[refusedAt - 1] ?? 'plain'];
  const field = `updates[${refusedAt - 1}].tuple`;
  const key = keyText(update.tuple);
  return new AppError<AuthzReason>(reason, `${field}: ${key} ${text}`, { field, tuple: key });
}

/** `doc:1#viewer@user:ann`. */
function keyText({ namespace, objectId, relation, subject }: TupleKey): string {
  const [type, id, subjectRelation] = subjectToColumns(subject);
  const userset = subjectRelation === '' ? '' : `#${subjectRelation}`;
  const who = type === '*' ? `${id || 'user'}:*` : `${type || 'user'}:${id}${userset}`;
  return `${namespace}:${objectId}#${relation}@${who}`;
}
