import { checkTenantId, checkUserId } from '../../model/names.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { WriteMeta } from '../ports.ts';
import type { ReadIndex } from '../reads/read-index.ts';
import type { ProjectSettings } from './project-settings.ts';
import { readSettings } from './settings-read.ts';
import type { SettingsSource } from './settings-source.ts';

/** Fields of every request of WorkspaceService and GroupService, and the caller. */
export type ManagementCall = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly actingUserId: string;
  readonly meta: WriteMeta;
};

/** The common fields of a request. Errors: FIELD_REQUIRED, FIELD_INVALID. */
export function checkManagementCall(call: ManagementCall): void {
  checkUserId('acting_user_id', call.actingUserId);
  checkTenantId('tenant_id', call.tenantId);
}

/** Parts that decide whether a call may work in its project. */
export type ShardOpening = {
  readonly settingsSource: SettingsSource;
  readonly index: Pick<ReadIndex, 'load'>;
  /** Whether no other instance can have changed the project meanwhile. */
  readonly isAlone: () => boolean;
};

/**
 * The shard of a call whose arguments were all checked. Beside other instances the project's settings are
 * as new as those that any of them acknowledged before the call. Errors: FIELD_INVALID, PROJECT_UNKNOWN,
 * PROJECT_SUSPENDED, REGION_REFUSED, STORE_UNAVAILABLE; QUEUE_FULL where too many reads wait. Cost: beside
 * other instances a share of a query of the read index.
 */
export async function openShard(
  opening: ShardOpening,
  { projectId, tenantId }: Pick<ManagementCall, 'projectId' | 'tenantId'>,
): Promise<ShardKey> {
  const { settingsSource } = opening;
  const shard = { projectId: settingsSource.resolveId(projectId), tenantId };
  settingsSource.guard(await settingsFor(opening, shard), 'data');
  return shard;
}

async function settingsFor(
  { settingsSource, index, isAlone }: ShardOpening,
  { projectId, tenantId }: ShardKey,
): Promise<ProjectSettings> {
  if (isAlone()) return await settingsSource.settings(projectId);
  return (await readSettings({ settingsSource, index }, projectId, tenantId)).settings;
}
