import type { ClientBase, Pool } from 'pg';
import { checkObjectId } from '../../model/names.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { freeSlug, slugOf } from '../../model/slug.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { deleteGroups } from '../../store/sql/organization/delete-groups.ts';
import {
  type GroupRow,
  type GroupStandingRow,
  groupsOfWorkspace,
  groupsReadableBy,
  insertGroup,
  selectGroupStanding,
  selectIsGroupMember,
  selectTakenGroupSlugs,
  selectWorkspaceStanding,
} from '../../store/sql/organization/groups.ts';
import type { WriteMeta } from '../ports.ts';
import { type ShardOpening, openShard } from '../projects/management-call.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import { readSnapshot, streamSnapshot } from '../reads/snapshot-read.ts';
import { REQUIREMENTS } from '../rules/roles.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';
import {
  type GroupMethod,
  forbidden,
  groupUnknown,
  isActiveAdmin,
  isActiveMember,
  standingByRows,
  workspaceUnknown,
} from './group-access.ts';
import {
  type CreateGroupRequest,
  type GroupRequest,
  type ListGroupsRequest,
  checkCreateGroup,
  checkGroupRequest,
  checkScope,
} from './group-input.ts';

export type GroupServiceOptions = ShardOpening & {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly headRevisions: HeadRevisions;
  readonly writer: TupleWrites;
};

export type Group = ShardKey & {
  readonly id: string;
  /** '' is a standalone group. */
  readonly workspaceId: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdByUserId: string;
  /** Microseconds since the epoch. */
  readonly createdAtUs: bigint;
  readonly updatedAtUs: bigint;
};

/** The namespace of groups. */
export const GROUP_NAMESPACE = 'group';
/** Slug of a group whose name has nothing to make one of. */
const SLUG_FALLBACK = 'group';

/**
 * Groups themselves; their members are in GroupMemberService. Every write of groups or memberships
 * holds the shard, so that the rows it read are still the same when it commits.
 */
export class GroupService {
  readonly #options: GroupServiceOptions;

  constructor(options: GroupServiceOptions) {
    this.#options = options;
  }

  /**
   * CreateGroup. Errors: FIELD_*, WORKSPACE_UNKNOWN, ACTION_FORBIDDEN, SLUG_TAKEN, the project's,
   * those of TupleWrites.exclusive.
   */
  async create(request: CreateGroupRequest, meta: WriteMeta): Promise<Group> {
    const { writer, ids } = this.#options;
    const displayName = checkCreateGroup(request);
    const shard = await openShard(this.#options, request);
    const { actingUserId, workspaceId } = request;
    return await writer.exclusive([shard], meta, async ({ client }) => {
      if (workspaceId !== '') {
        const part = await selectWorkspaceStanding(client, shard, workspaceId, actingUserId);
        if (part === undefined) throw workspaceUnknown(workspaceId);
        if (!isActiveAdmin(part)) throw forbidden(`create groups in workspace ${workspaceId}`);
      }
      const row = await insertGroup(client, shard, {
        id: ids.uuid(),
        workspace_id: workspaceId,
        slug: await slugFor(client, shard, request, displayName),
        display_name: displayName,
        created_by_user_id: actingUserId,
      });
      return groupFromRow(shard, row);
    });
  }

  /** GetGroup. Errors: FIELD_*, GROUP_UNKNOWN, ACTION_FORBIDDEN, STORE_UNAVAILABLE, the project's. */
  async get(request: GroupRequest): Promise<Group> {
    checkGroupRequest(request);
    const { clock } = this.#options;
    const shard = await openShard(this.#options, request);
    return await readSnapshot(this.#options, shard, async (client) =>
      groupFromRow(shard, await selectGroupFor('getGroup', client, shard, request, clock)),
    );
  }

  /**
   * ListGroups: what the acting user may read, all or of one workspace, in order of creation, page by
   * page. Errors, at the first page: FIELD_*, WORKSPACE_UNKNOWN, ACTION_FORBIDDEN, the project's; at
   * any: RESULT_TOO_LARGE, STORE_UNAVAILABLE.
   */
  async *list(request: ListGroupsRequest): AsyncGenerator<readonly Group[], void, undefined> {
    const { clock } = this.#options;
    const { actingUserId, workspaceId } = request;
    checkScope(request);
    if (workspaceId !== '') checkObjectId('workspace_id', workspaceId);
    const shard = await openShard(this.#options, request);
    const pages = streamSnapshot<GroupRow>(this.#options, shard, async (client) => {
      if (workspaceId === '') return groupsReadableBy(shard, actingUserId, nowUsOf(clock));
      const part = await selectWorkspaceStanding(client, shard, workspaceId, actingUserId);
      if (part === undefined) throw workspaceUnknown(workspaceId);
      if (!isActiveMember(part)) throw forbidden(`read the groups of workspace ${workspaceId}`);
      return groupsOfWorkspace(shard, workspaceId);
    });
    for await (const rows of pages) yield rows.map((row) => groupFromRow(shard, row));
  }

  /**
   * DeleteGroup: the group, its enrollments and those of it elsewhere, every tuple on it and every
   * tuple whose subject is it or its userset. Errors: FIELD_*, GROUP_UNKNOWN, ACTION_FORBIDDEN, the
   * project's, those of TupleWrites.exclusive.
   */
  async delete(request: GroupRequest, meta: WriteMeta): Promise<void> {
    checkGroupRequest(request);
    const { writer, clock } = this.#options;
    const shard = await openShard(this.#options, request);
    await writer.exclusive([shard], meta, async (transaction) => {
      const { client } = transaction;
      const group = await selectGroupFor('deleteGroup', client, shard, request, clock);
      await deleteGroups(client, shard, [group.id]);
      const object = { namespace: GROUP_NAMESPACE, objectId: group.id };
      await transaction.deleteObjects(shard, [object], meta);
    });
  }
}

/**
 * The group of a request whose acting user may call `method`. Errors: GROUP_UNKNOWN,
 * ACTION_FORBIDDEN. Cost: one query; for readers by membership also one for the user's groups.
 */
export async function selectGroupFor(
  method: GroupMethod,
  client: ClientBase,
  shard: ShardKey,
  { groupId, actingUserId }: Pick<GroupRequest, 'groupId' | 'actingUserId'>,
  clock: Clock,
): Promise<GroupStandingRow> {
  const group = await selectGroupStanding(client, shard, groupId, actingUserId);
  if (group === undefined) throw groupUnknown('group_id', groupId);
  const standing = standingByRows(group, actingUserId);
  if (standing === 'manager') return group;
  if (REQUIREMENTS.group[method] === 'group-manage') throw forbidden(`manage group ${groupId}`);
  if (standing === 'reader') return group;
  if (await selectIsGroupMember(client, shard, actingUserId, groupId, nowUsOf(clock))) return group;
  throw forbidden(`read group ${groupId}`);
}

/** The wall clock in microseconds, as expiries are stored. */
export function nowUsOf(clock: Clock): bigint {
  return BigInt(Math.floor(clock.nowMs() * 1000));
}

async function slugFor(
  client: ClientBase,
  shard: ShardKey,
  { slug, workspaceId }: CreateGroupRequest,
  displayName: string,
): Promise<string> {
  const takenOf = (slugs: readonly string[]): Promise<ReadonlySet<string>> =>
    selectTakenGroupSlugs(client, shard, workspaceId, slugs);
  if (slug === '') return await freeSlug(slugOf(displayName, SLUG_FALLBACK), takenOf);
  if (!(await takenOf([slug])).has(slug)) return slug;
  throw new AppError<AuthzReason>('SLUG_TAKEN', `slug: ${slug} is taken`, {
    field: 'slug',
    slug,
  });
}

function groupFromRow(shard: ShardKey, row: GroupRow): Group {
  return {
    ...shard,
    id: row.id,
    workspaceId: row.workspace_id,
    slug: row.slug,
    displayName: row.display_name,
    createdByUserId: row.created_by_user_id,
    createdAtUs: BigInt(row.created_at_us),
    updatedAtUs: BigInt(row.updated_at_us),
  };
}
