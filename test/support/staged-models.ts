import type { Pool } from 'pg';
import { StagedModels } from '../../src/services/models/staged-models.ts';
import type { ProjectService } from '../../src/services/projects/project-service.ts';
import type { SettingsSource } from '../../src/services/projects/settings-source.ts';

/** How models come into force where no job looks at stored tuples. */
export function stagedModels(
  pool: Pool,
  settingsSource: SettingsSource,
  projects: () => ProjectService,
): StagedModels {
  return new StagedModels({
    pool,
    settingsSource,
    projects,
    onPending: () => undefined,
    waitMaxMs: 0,
  });
}
