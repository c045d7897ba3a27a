import type { HeadRevision } from '../reads/head-revisions.ts';
import type { ReadIndex } from '../reads/read-index.ts';
import type { ProjectSettings } from './project-settings.ts';
import type { SettingsSource } from './settings-source.ts';

export type SettingsRead = {
  readonly settingsSource: Pick<SettingsSource, 'known' | 'load' | 'confirm' | 'atLeast'>;
  readonly index: Pick<ReadIndex, 'load'>;
};

/**
 * The settings of a project and the head revision of one of its shards, as last acknowledged by any
 * instance before this call, or newer. Errors: FIELD_INVALID, PROJECT_UNKNOWN; those of `ReadIndex.load`.
 * Cost: a share of a query of the read index.
 */
export async function readSettings(
  { settingsSource, index }: SettingsRead,
  projectId: string,
  tenantId: string,
  deadlineMs?: number,
  signal?: AbortSignal,
): Promise<{ readonly settings: ProjectSettings; readonly headRevision: HeadRevision }> {
  // Refuses an invalid project id before the shard's head revision is queried.
  const known = settingsSource.known(projectId) ?? (await settingsSource.load(projectId));
  const id = known.projectId;
  const { headRevision, settingsVersion, askedMs } = await index.load(
    id,
    tenantId,
    deadlineMs,
    signal,
  );
  const settings =
    settingsSource.confirm(id, settingsVersion, askedMs) ??
    (await settingsSource.atLeast(id, settingsVersion ?? 0));
  return { settings, headRevision };
}
