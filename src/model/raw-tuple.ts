import type { JsonObject } from '../shared/json.ts';

/** A userset of a request. Like all types here it is close to the wire, so that each error can name its field. */
export type RawSubjectSet = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
};

/** The oneof `Subject.kind`; undefined if none is set. */
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
  /** Name of the condition; undefined or '' means none. */
  readonly conditionName?: string | undefined;
  readonly conditionParams?: JsonObject | undefined;
};

/** An update. `op` has the numbers of the proto enum: 1 inserts, 2 deletes, anything else is rejected. */
export type RawUpdate = { readonly op: number; readonly tuple?: RawTuple | undefined };
