import type { IdSource } from '../../shared/ids.ts';
import type { ProjectService } from '../project-service.ts';
import type { SnapshotOptions } from '../snapshot-read.ts';
import type { TupleWrites } from '../tuple-writes.ts';

/** What the use cases of workspaces, members and invitations work with. */
export type WorkspaceOptions = SnapshotOptions & {
  readonly projects: ProjectService;
  readonly writer: TupleWrites;
  readonly ids: IdSource;
};
