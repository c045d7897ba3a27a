import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  deleteMembership,
  selectMembership,
  upsertMembership,
} from '../../store/sql/organization/memberships.ts';
import {
  MEMBERSHIP,
  type MembershipEvent,
  type MembershipState,
  type TupleEffect,
} from '../rules/membership.ts';
import { ADMIN, GUEST, MEMBER, OWNER, RELATION_OF_ROLE, type Role } from '../rules/roles.ts';
import type { WriteTransaction } from '../writes/write-transaction.ts';
import { type Membership, membershipFromRow } from './workspace-model.ts';

const ROLES: readonly Role[] = [OWNER, ADMIN, MEMBER, GUEST];
const REFUSALS = {
  MEMBER_UNKNOWN: 'is not a member of the workspace',
  ALREADY_MEMBER: 'is a member of the workspace already',
  MEMBERSHIP_STATE: 'is in a state that does not allow this',
} as const;

/** One event of one user's membership. */
export type MemberEvent = {
  readonly workspaceId: string;
  readonly userId: string;
  readonly event: MembershipEvent;
  /** The new role; undefined keeps the one of the row. */
  readonly role?: Role | undefined;
};

/** Result of an event: the row as it is now (undefined: gone), and the tuple changes to write. */
export type MemberChange = {
  readonly membership: Membership | undefined;
  readonly updates: readonly TupleChange[];
};

/**
 * Applies an event to a membership row by the table of its states, and returns its effect on tuples.
 * The transaction holds the shard, so that nothing comes between the read and the change.
 * Errors: MEMBER_UNKNOWN, ALREADY_MEMBER, MEMBERSHIP_STATE.
 */
export async function changeMember(
  { client }: WriteTransaction,
  shard: ShardKey,
  { workspaceId, userId, event, role }: MemberEvent,
): Promise<MemberChange> {
  const before = await selectMembership(client, shard, workspaceId, userId);
  const state = (before?.status ?? 0) as MembershipState;
  const outcome = MEMBERSHIP[state][event];
  if ('refusal' in outcome) {
    throw new AppError<AuthzReason>(
      outcome.refusal,
      `user ${userId} ${REFUSALS[outcome.refusal]}`,
      {
        workspace_id: workspaceId,
        user_id: userId,
      },
    );
  }
  const roleAfter = role ?? ((before?.role ?? GUEST) as Role);
  const updates = tupleUpdates(outcome.tuples, workspaceId, userId, roleAfter);
  if (outcome.next === 0) {
    await deleteMembership(client, shard, workspaceId, userId);
    return { membership: undefined, updates };
  }
  const row = await upsertMembership(client, shard, {
    workspaceId,
    userId,
    role: roleAfter,
    status: outcome.next,
  });
  return { membership: membershipFromRow(shard, row), updates };
}

/** The tuple changes of an effect on a user's relations to a workspace. Pure. */
export function tupleUpdates(
  effect: TupleEffect,
  workspaceId: string,
  userId: string,
  role: Role,
): TupleChange[] {
  const change = (op: TupleChange['op'], of: Role): TupleChange => ({
    op,
    tuple: {
      namespace: 'workspace',
      objectId: workspaceId,
      relation: RELATION_OF_ROLE[of],
      subject: { kind: 'user', userId },
    },
  });
  switch (effect) {
    case 'keep':
      return [];
    case 'grant':
      return [change('insert', role)];
    case 'replace':
      return ROLES.map((of) => change(of === role ? 'insert' : 'delete', of));
    case 'revoke':
      return ROLES.map((of) => change('delete', of));
  }
}
