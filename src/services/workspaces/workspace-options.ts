import type { IdSource } from '../../shared/ids.ts';
import type { ShardOpening } from '../management-call.ts';
import type { SnapshotOptions } from '../snapshot-read.ts';
import type { TupleWrites } from '../tuple-writes.ts';

/** What the use cases of workspaces, members and invitations work with. */
export type WorkspaceOptions = SnapshotOptions &
  ShardOpening & {
    readonly writer: TupleWrites;
    readonly ids: IdSource;
  };
