import type { JsonObject } from '../model/canonical-json.ts';
import type { WriteMeta } from './ports.ts';

/** Requests of the tuple methods, close to the wire, so that each error can name its field. */
export type RawSubjectSet = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
};

/** The oneof `Subject.kind`; undefined where none is set. */
export type RawSubject =
  | { readonly case: 'userId'; readonly value: string }
  | { readonly case: 'set'; readonly value: RawSubjectSet }
  | { readonly case: 'wildcard'; readonly value: boolean }
  | { readonly case: 'wildcardOf'; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined };

/** google.protobuf.Timestamp. */
export type RawTimestamp = { readonly seconds: bigint; readonly nanos: number };

export type RawTuple = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject?: { readonly kind: RawSubject } | undefined;
  readonly expiresAt?: RawTimestamp | undefined;
  /** undefined or '' is unconditional. */
  readonly conditionName?: string | undefined;
  readonly conditionParams?: JsonObject | undefined;
};

/** A tuple of an import; `writtenAt` is kept where it is given. */
export type ImportedTuple = RawTuple & { readonly writtenAt?: RawTimestamp | undefined };

/** `op` as the proto enum numbers it: 1 inserts, 2 deletes, anything else is refused. */
export type RawUpdate = { readonly op: number; readonly tuple?: RawTuple | undefined };

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
