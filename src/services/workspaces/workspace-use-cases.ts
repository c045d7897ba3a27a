import {
  checkDisplayName,
  checkObjectId,
  checkUserId,
  NAME_CHARACTERS_MAX,
} from '../../model/names.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { checkSlug, freeSlug, slugOf } from '../../model/slug.ts';
import { AppError } from '../../shared/app-error.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { deleteGroups } from '../../store/sql/organization/delete-groups.ts';
import {
  type WorkspaceRow,
  deleteWorkspaceRows,
  hasPersonalWorkspace,
  insertWorkspace,
  selectGroupIdsOfWorkspace,
  selectTakenWorkspaceSlugs,
  updateWorkspace,
  workspacesOfUserQuery,
} from '../../store/sql/organization/workspaces.ts';
import {
  type ManagementCall,
  checkManagementCall,
  openShard,
} from '../projects/management-call.ts';
import { readSnapshot, streamSnapshot } from '../reads/snapshot-read.ts';
import { ADMIN, OWNER, REQUIREMENTS } from '../rules/roles.ts';
import type { WriteTransaction } from '../writes/write-transaction.ts';
import { changeMember } from './member-changes.ts';
import { assertTeam, openWorkspace, type WorkspaceOptions } from './workspace-access.ts';
import {
  PERSONAL,
  TEAM,
  type Workspace,
  type WorkspaceType,
  workspaceFromRow,
} from './workspace-model.ts';

const DEFAULT_NAME = 'Personal';

/**
 * The display name of a user's PERSONAL workspace: the local part of a user id that is an e-mail
 * address, else "Personal". At most 200 characters.
 */
export function personalNameOf(userId: string): string {
  const at = userId.lastIndexOf('@');
  const localPart = at > 0 ? userId.slice(0, at).trim() : '';
  if (localPart === '') return DEFAULT_NAME;
  return Array.from(localPart).slice(0, NAME_CHARACTERS_MAX).join('').trim();
}

export type CreateWorkspaceCall = ManagementCall & {
  readonly displayName: string;
  /** '' derives it from the display name. */
  readonly slug: string;
};
export type WorkspaceCall = ManagementCall & { readonly workspaceId: string };
export type UpdateWorkspaceCall = WorkspaceCall & { readonly displayName: string };
export type TransferOwnershipCall = WorkspaceCall & { readonly newOwnerUserId: string };

type NewWorkspace = {
  readonly id: string;
  readonly type: WorkspaceType;
  readonly ownerUserId: string;
  readonly displayName: string;
  /** '' derives it. */
  readonly slug: string;
};

const REQUIRED = REQUIREMENTS.workspace;

/**
 * The use cases of workspaces themselves. Every change of rows happens while the shard's row is
 * locked, in one transaction with the tuples that it grants or removes. All methods also fail with
 * FIELD_*, the errors of the project, STORE_UNAVAILABLE and, where they write, those of
 * TupleWrites.exclusive.
 */
export class WorkspaceUseCases {
  readonly #options: WorkspaceOptions;

  constructor(options: WorkspaceOptions) {
    this.#options = options;
  }

  /** Makes a TEAM workspace, owned by the acting user. Errors: SLUG_TAKEN. */
  async create(call: CreateWorkspaceCall): Promise<Workspace> {
    checkManagementCall(call);
    const displayName = checkDisplayName('display_name', call.displayName);
    if (call.slug !== '') checkSlug('slug', call.slug);
    const { writer, ids } = this.#options;
    const shard = await openShard(this.#options, call);
    const workspace = {
      id: ids.uuid(),
      type: TEAM,
      ownerUserId: call.actingUserId,
      displayName,
      slug: call.slug,
    } as const;
    return await writer.exclusive([shard], call.meta, (transaction) =>
      insertOwned(transaction, shard, workspace, call),
    );
  }

  /** Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN. */
  async get(call: WorkspaceCall): Promise<Workspace> {
    checkWorkspaceCall(call);
    const shard = await openShard(this.#options, call);
    const { workspace } = await readSnapshot(this.#options, shard, (client) =>
      openWorkspace(client, shard, call.workspaceId, call.actingUserId, REQUIRED.getWorkspace),
    );
    return workspace;
  }

  /**
   * Pages of the workspaces in which the acting user is ACTIVE, in the order of their making. The
   * first call ever of a user makes its PERSONAL workspace; of many at once, exactly one does.
   */
  async list(call: ManagementCall): Promise<AsyncIterable<readonly Workspace[]>> {
    checkManagementCall(call);
    const { pool } = this.#options;
    const shard = await openShard(this.#options, call);
    const hasPersonal = await hasPersonalWorkspace(pool, shard, call.actingUserId).catch(
      (error: unknown) => {
        throw storeError(error);
      },
    );
    if (!hasPersonal) await this.#provisionPersonal(shard, call);
    const query = workspacesOfUserQuery(shard, call.actingUserId);
    return mapPages(
      streamSnapshot<WorkspaceRow>(this.#options, shard, () => Promise.resolve(query)),
      (row) => workspaceFromRow(shard, row),
    );
  }

  /** Sets the display name; the slug stays. Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN. */
  async update(call: UpdateWorkspaceCall): Promise<Workspace> {
    checkWorkspaceCall(call);
    const displayName = checkDisplayName('display_name', call.displayName);
    const { writer } = this.#options;
    const shard = await openShard(this.#options, call);
    const { workspaceId, actingUserId, meta } = call;
    return await writer.exclusive([shard], meta, async ({ client }) => {
      await openWorkspace(client, shard, workspaceId, actingUserId, REQUIRED.updateWorkspace);
      const change = { displayName, ownerUserId: null };
      return workspaceFromRow(shard, await updateWorkspace(client, shard, workspaceId, change));
    });
  }

  /**
   * Makes another user the owner, a member if need be; the former owner stays as an ADMIN.
   * Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN, PERSONAL_WORKSPACE, OWNER_FIXED (to itself),
   * MEMBERSHIP_STATE (to a member that is not ACTIVE).
   */
  async transferOwnership(call: TransferOwnershipCall): Promise<Workspace> {
    checkWorkspaceCall(call);
    checkUserId('new_owner_user_id', call.newOwnerUserId);
    const { writer } = this.#options;
    const shard = await openShard(this.#options, call);
    const { workspaceId, actingUserId, newOwnerUserId, meta } = call;
    return await writer.exclusive([shard], meta, async (transaction) => {
      const { client } = transaction;
      const needed = REQUIRED.transferOwnership;
      const found = await openWorkspace(client, shard, workspaceId, actingUserId, needed);
      assertTeam(found.workspace, 'be transferred');
      if (newOwnerUserId === actingUserId) {
        throw new AppError<AuthzReason>('OWNER_FIXED', 'new_owner_user_id: is the owner already', {
          field: 'new_owner_user_id',
          workspace_id: workspaceId,
        });
      }
      const event = {
        workspaceId,
        userId: actingUserId,
        event: 'changeRole',
        role: ADMIN,
      } as const;
      const former = await changeMember(transaction, shard, event);
      const owner = await changeMember(transaction, shard, {
        workspaceId,
        userId: newOwnerUserId,
        event: 'receiveOwnership',
        role: OWNER,
      });
      const change = { displayName: null, ownerUserId: newOwnerUserId };
      const row = await updateWorkspace(client, shard, workspaceId, change);
      await transaction.write(shard, [...former.updates, ...owner.updates], meta);
      return workspaceFromRow(shard, row);
    });
  }

  /**
   * Deletes a workspace with its members, invitations and groups, and every tuple that names one of
   * these objects. Errors: WORKSPACE_UNKNOWN, ACTION_FORBIDDEN, PERSONAL_WORKSPACE.
   */
  async delete(call: WorkspaceCall): Promise<void> {
    checkWorkspaceCall(call);
    const { writer } = this.#options;
    const shard = await openShard(this.#options, call);
    const { workspaceId, actingUserId, meta } = call;
    await writer.exclusive([shard], meta, async (transaction) => {
      const { client } = transaction;
      const needed = REQUIRED.deleteWorkspace;
      const found = await openWorkspace(client, shard, workspaceId, actingUserId, needed);
      assertTeam(found.workspace, 'be deleted');
      const groupIds = await selectGroupIdsOfWorkspace(client, shard, workspaceId);
      if (groupIds.length > 0) await deleteGroups(client, shard, groupIds);
      await deleteWorkspaceRows(client, shard, workspaceId);
      const objects = [
        { namespace: 'workspace', objectId: workspaceId },
        ...groupIds.map((objectId) => ({ namespace: 'group', objectId })),
      ];
      await transaction.deleteObjects(shard, objects, meta);
    });
  }

  async #provisionPersonal(shard: ShardKey, call: ManagementCall): Promise<void> {
    const { writer, ids } = this.#options;
    const { actingUserId } = call;
    const workspace = {
      id: ids.uuid(),
      type: PERSONAL,
      ownerUserId: actingUserId,
      displayName: personalNameOf(actingUserId),
      slug: '',
    } as const;
    await writer.exclusive([shard], call.meta, async (transaction) => {
      // Another call may have been first; the unique index would refuse a second one in any case.
      if (await hasPersonalWorkspace(transaction.client, shard, actingUserId)) return;
      await insertOwned(transaction, shard, workspace, call);
    });
  }
}

/** Inserts a workspace with its owner's membership and tuple. Errors: SLUG_TAKEN. */
async function insertOwned(
  transaction: WriteTransaction,
  shard: ShardKey,
  workspace: NewWorkspace,
  { meta }: ManagementCall,
): Promise<Workspace> {
  const { client } = transaction;
  const { id, type, ownerUserId, displayName } = workspace;
  const takenOf = (slugs: readonly string[]): Promise<ReadonlySet<string>> =>
    selectTakenWorkspaceSlugs(client, shard, slugs);
  let { slug } = workspace;
  if (slug === '') {
    slug = await freeSlug(slugOf(displayName, type === PERSONAL ? 'personal' : 'team'), takenOf);
  } else if ((await takenOf([slug])).has(slug)) {
    throw new AppError<AuthzReason>('SLUG_TAKEN', `slug: ${slug} is taken`, { field: 'slug' });
  }
  const row = await insertWorkspace(client, shard, { id, type, ownerUserId, displayName, slug });
  const event = { workspaceId: id, userId: ownerUserId, event: 'add', role: OWNER } as const;
  const { updates } = await changeMember(transaction, shard, event);
  await transaction.write(shard, updates, meta);
  return workspaceFromRow(shard, row);
}

/** The fields that name a workspace. Errors: FIELD_REQUIRED, FIELD_INVALID. */
export function checkWorkspaceCall(call: WorkspaceCall): void {
  checkManagementCall(call);
  checkObjectId('workspace_id', call.workspaceId);
}

/** The same pages with each entry mapped. */
export async function* mapPages<Row, Item>(
  pages: AsyncIterable<readonly Row[]>,
  itemOf: (row: Row) => Item,
): AsyncGenerator<readonly Item[], void, undefined> {
  for await (const page of pages) yield page.map(itemOf);
}
