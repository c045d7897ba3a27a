import type { RawTimestamp, RawTuple, RawUpdate } from '../../model/raw-tuple.ts';
import type { WriteMeta } from '../ports.ts';

/** A tuple of an import; `writtenAt` is kept where it is given. */
export type ImportedTuple = RawTuple & { readonly writtenAt?: RawTimestamp | undefined };

export type WriteRequest = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly updates: readonly RawUpdate[];
  readonly meta: WriteMeta;
};

export type ReadRequest = {
  readonly projectId: string;
  readonly tenantId: string;
  /** Filters: '' matches everything. */
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subjectUserId: string;
  readonly token: string;
};

export type DeprovisionRequest = {
  readonly projectId: string;
  readonly userId: string;
  readonly meta: WriteMeta;
};

export type ExportRequest = { readonly projectId: string; readonly userId: string };

export type SubjectGrant = {
  readonly tenantId: string;
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  /** '' for a direct grant. */
  readonly viaGroup: string;
};
