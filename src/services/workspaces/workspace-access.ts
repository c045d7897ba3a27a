import type { ClientBase, Pool } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import { selectActingWorkspace } from '../../store/sql/organization/workspaces.ts';
import type { ShardOpening } from '../projects/management-call.ts';
import type { SnapshotOptions } from '../reads/snapshot-read.ts';
import { ACTIVE, RELATION_OF_ROLE, type Role, isAtLeast } from '../rules/roles.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';
import { PERSONAL, type Workspace, workspaceFromRow } from './workspace-model.ts';

/** A workspace and the acting user's part in it. */
export type ActingWorkspace = {
  readonly workspace: Workspace;
  /** The role of its membership, whatever the status; undefined where it has none. */
  readonly role: Role | undefined;
  readonly isActive: boolean;
};

/** The workspace with the acting user's part in it. Errors: WORKSPACE_UNKNOWN. */
export async function findWorkspace(
  client: ClientBase | Pool,
  shard: ShardKey,
  workspaceId: string,
  actingUserId: string,
): Promise<ActingWorkspace> {
  const row = await selectActingWorkspace(client, shard, workspaceId, actingUserId);
  if (row === undefined) {
    throw new AppError<AuthzReason>(
      'WORKSPACE_UNKNOWN',
      `workspace ${workspaceId} does not exist`,
      {
        workspace_id: workspaceId,
      },
    );
  }
  return {
    workspace: workspaceFromRow(shard, row),
    role: row.acting_role === null ? undefined : (row.acting_role as Role),
    isActive: row.acting_status === ACTIVE,
  };
}

/** Same as `findWorkspace`, for an acting user who needs a role. Errors: also ACTION_FORBIDDEN. */
export async function openWorkspace(
  client: ClientBase | Pool,
  shard: ShardKey,
  workspaceId: string,
  actingUserId: string,
  needed: Role,
): Promise<ActingWorkspace> {
  const found = await findWorkspace(client, shard, workspaceId, actingUserId);
  assertRole(found, needed);
  return found;
}

/** Errors: ACTION_FORBIDDEN where the acting user is not ACTIVE with this role or a higher one. */
export function assertRole({ workspace, role, isActive }: ActingWorkspace, needed: Role): void {
  if (isActive && role !== undefined && isAtLeast(role, needed)) return;
  throw forbidden(workspace.id, `needs the role ${RELATION_OF_ROLE[needed]}`);
}

/** ACTION_FORBIDDEN on a workspace. */
export function forbidden(workspaceId: string, why: string): AppError {
  return new AppError<AuthzReason>(
    'ACTION_FORBIDDEN',
    `acting_user_id: ${why} in workspace ${workspaceId}`,
    {
      workspace_id: workspaceId,
    },
  );
}

/** Errors: PERSONAL_WORKSPACE. */
export function assertTeam({ id, type }: Workspace, action: string): void {
  if (type !== PERSONAL) return;
  throw new AppError<AuthzReason>('PERSONAL_WORKSPACE', `a personal workspace cannot ${action}`, {
    workspace_id: id,
  });
}

/** Parts of the use cases of workspaces, members and invitations. */
export type WorkspaceOptions = SnapshotOptions &
  ShardOpening & {
    readonly writer: TupleWrites;
    readonly ids: IdSource;
  };
