import type { Pool } from 'pg';
import { StagedModels } from '../../src/services/models/staged-models.ts';
import type { ProjectService } from '../../src/services/project-service.ts';

/** How models come into force where no job looks at stored tuples. */
export function stagedModels(pool: Pool, projects: () => ProjectService): StagedModels {
  return new StagedModels({ pool, projects, onPending: () => undefined, waitMaxMs: 0 });
}
