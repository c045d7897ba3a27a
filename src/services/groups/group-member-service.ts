import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, ShardKey, Subject } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import {
  type EnrollmentRow,
  MEMBER_GROUP,
  MEMBER_USER,
  type MemberFacts,
  type MemberKey,
  type MemberRow,
  enrollmentsOfGroup,
  membersOfGroup,
  selectMemberFacts,
  upsertEnrollment,
} from '../../store/sql/organization/group-members.ts';
import type { WriteMeta } from '../ports.ts';
import { openShard } from '../projects/management-call.ts';
import { streamSnapshot } from '../reads/snapshot-read.ts';
import {
  ENROLLMENT_TRANSITIONS,
  type EnrollmentEvent,
  type EnrollmentOutcome,
  enrollmentStateNumber,
  enrollmentStateOf,
} from '../rules/enrollment.ts';
import type { WriteTransaction } from '../writes/write-transaction.ts';
import { groupUnknown } from './group-access.ts';
import {
  type GroupMemberRequest,
  type GroupRequest,
  type SetEnrollmentStateRequest,
  checkGroupRequest,
  checkMember,
  checkNotItself,
  checkState,
} from './group-input.ts';
import {
  GROUP_NAMESPACE,
  type GroupServiceOptions,
  nowUsOf,
  selectGroupFor,
} from './group-service.ts';

/** The relation whose tuples are memberships. */
const MEMBER_RELATION = 'member';

export type GroupMember = {
  readonly kind: 'user' | 'group';
  readonly id: string;
};

export type Enrollment = {
  readonly groupId: string;
  readonly member: GroupMember;
  /** Number of the proto enum. */
  readonly state: number;
  /** Microseconds since the epoch. */
  readonly createdAtUs: bigint;
  readonly updatedAtUs: bigint;
};

type GroupMemberChange = {
  readonly method: 'addGroupMember' | 'removeGroupMember' | 'setEnrollmentState';
  readonly event: EnrollmentEvent;
  readonly member: MemberKey;
  readonly request: GroupMemberRequest;
};

/**
 * Members of groups: plain members, which are tuples and nothing else, and enrollments, which are
 * rows with a tuple while their state bears access (rules/enrollment.ts).
 */
export class GroupMemberService {
  readonly #options: GroupServiceOptions;

  constructor(options: GroupServiceOptions) {
    this.#options = options;
  }

  /**
   * AddGroupMember; again is no change. Errors: FIELD_*, GROUP_UNKNOWN (also of the member),
   * ACTION_FORBIDDEN, the project's, those of TupleWrites.exclusive.
   */
  async add(request: GroupMemberRequest, meta: WriteMeta): Promise<void> {
    const member = checkMember(request);
    checkNotItself(request.groupId, member);
    await this.#change({ method: 'addGroupMember', event: 'add', member, request }, meta);
  }

  /** RemoveGroupMember. Errors: as `add`; MEMBER_UNKNOWN. */
  async remove(request: GroupMemberRequest, meta: WriteMeta): Promise<void> {
    const member = checkMember(request);
    await this.#change({ method: 'removeGroupMember', event: 'remove', member, request }, meta);
  }

  /** SetEnrollmentState: the row, with the tuple that its state asks for. Errors: as `add`. */
  async setState(request: SetEnrollmentStateRequest, meta: WriteMeta): Promise<Enrollment> {
    const member = checkMember(request);
    const state = checkState(request.state);
    checkNotItself(request.groupId, member);
    const event = `set_${state}` as const;
    const change = { method: 'setEnrollmentState', event, member, request } as const;
    const row = await this.#change(change, meta);
    assert(row !== undefined, 'setting a state makes a row');
    return enrollmentFromRow(request.groupId, row);
  }

  /**
   * ListGroupMembers: who holds the member tuple, users by id, then groups by id, page by page.
   * Errors, at the first page: FIELD_*, GROUP_UNKNOWN, ACTION_FORBIDDEN, the project's; at any:
   * RESULT_TOO_LARGE, STORE_UNAVAILABLE.
   */
  async *listMembers(
    request: GroupRequest,
  ): AsyncGenerator<readonly GroupMember[], void, undefined> {
    checkGroupRequest(request);
    const { clock } = this.#options;
    const shard = await openShard(this.#options, request);
    const pages = streamSnapshot<MemberRow>(this.#options, shard, async (client) => {
      await selectGroupFor('listGroupMembers', client, shard, request, clock);
      return membersOfGroup(shard, request.groupId, nowUsOf(clock));
    });
    for await (const rows of pages) {
      yield rows.map((row) => ({
        kind: row.subject_namespace === '' ? 'user' : 'group',
        id: row.subject_id,
      }));
    }
  }

  /** ListEnrollments: every row, users by id, then groups by id. Errors: as `listMembers`. */
  async *listEnrollments(
    request: GroupRequest,
  ): AsyncGenerator<readonly Enrollment[], void, undefined> {
    checkGroupRequest(request);
    const { clock } = this.#options;
    const shard = await openShard(this.#options, request);
    const pages = streamSnapshot<EnrollmentRow>(this.#options, shard, async (client) => {
      await selectGroupFor('listEnrollments', client, shard, request, clock);
      return enrollmentsOfGroup(shard, request.groupId);
    });
    for await (const rows of pages) {
      yield rows.map((row) => enrollmentFromRow(request.groupId, row));
    }
  }

  /** Takes the member through the transition table; the row afterwards, if there is one. */
  async #change(change: GroupMemberChange, meta: WriteMeta): Promise<EnrollmentRow | undefined> {
    const { writer, clock } = this.#options;
    const { method, event, member, request } = change;
    const shard = await openShard(this.#options, request);
    return await writer.exclusive([shard], meta, async (transaction) => {
      const { client } = transaction;
      await selectGroupFor(method, client, shard, request, clock);
      const facts = await selectMemberFacts(client, shard, request.groupId, member);
      if (!facts.is_known && event !== 'remove') throw groupUnknown('member.group_id', member.id);
      const outcome = ENROLLMENT_TRANSITIONS[stateBefore(facts)][event];
      if (outcome.needsTuple && !facts.has_tuple) throw memberUnknown(request.groupId, member);
      const row = await moveRow(transaction, shard, request.groupId, member, outcome);
      await moveTuple(transaction, shard, tupleOf(request.groupId, member), outcome, facts, meta);
      return row;
    });
  }
}

function stateBefore(facts: MemberFacts): keyof typeof ENROLLMENT_TRANSITIONS {
  if (facts.state === null) return 'none';
  const state = enrollmentStateOf(facts.state);
  assert(state !== undefined, 'the database holds states that exist');
  return state;
}

async function moveRow(
  { client }: WriteTransaction,
  shard: ShardKey,
  groupId: string,
  member: MemberKey,
  { next }: EnrollmentOutcome,
): Promise<EnrollmentRow | undefined> {
  if (next === 'none') return undefined;
  return await upsertEnrollment(client, shard, groupId, member, enrollmentStateNumber(next));
}

/** Writes what is not so yet: a repeated call leaves no change behind. */
async function moveTuple(
  transaction: WriteTransaction,
  shard: ShardKey,
  tuple: RelationTuple,
  outcome: EnrollmentOutcome,
  facts: MemberFacts,
  meta: WriteMeta,
): Promise<void> {
  if (outcome.tuple === 'present') {
    if (!facts.has_plain_tuple) {
      await transaction.write(shard, [{ op: 'insert', tuple }], meta);
    }
  } else if (facts.has_tuple) {
    await transaction.write(shard, [{ op: 'delete', tuple }], meta);
  }
}

function tupleOf(groupId: string, member: MemberKey): RelationTuple {
  const subject: Subject =
    member.kind === MEMBER_USER
      ? { kind: 'user', userId: member.id }
      : {
          kind: 'set',
          namespace: GROUP_NAMESPACE,
          objectId: member.id,
          relation: MEMBER_RELATION,
        };
  return { namespace: GROUP_NAMESPACE, objectId: groupId, relation: MEMBER_RELATION, subject };
}

function enrollmentFromRow(groupId: string, row: EnrollmentRow): Enrollment {
  return {
    groupId,
    member: { kind: row.member_kind === MEMBER_GROUP ? 'group' : 'user', id: row.member_id },
    state: row.state,
    createdAtUs: BigInt(row.created_at_us),
    updatedAtUs: BigInt(row.updated_at_us),
  };
}

function memberUnknown(groupId: string, member: MemberKey): AppError {
  const field = member.kind === MEMBER_USER ? 'member.user_id' : 'member.group_id';
  return new AppError<AuthzReason>(
    'MEMBER_UNKNOWN',
    `${field}: ${member.id} is not a member of ${groupId}`,
    {
      field,
    },
  );
}
