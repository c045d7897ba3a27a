import type { QueryMethod } from '../../protocol/queries.ts';
import type { RawMethod, WireFormat } from '../../protocol/shard-client.ts';
import type { Credential, CredentialSource } from '../callers/caller.ts';
import { type MethodRule, mustRule } from '../callers/method-rules.ts';
import type { DecisionRpc } from '../reads/decision-meter.ts';
import { scanJsonQuery, scanJsonScope } from './scan/json-scope.ts';
import {
  type QueryFieldNumbers,
  scanProtoQuery,
  scanProtoScope,
  type ScopeFieldNumbers,
} from './scan/proto-scope.ts';
import type { ScopeScan } from './scan/scope-scan.ts';

/** A method that has a hot path. */
export type HotMethod = {
  readonly path: string;
  /** Rule of what a caller needs for it. */
  readonly rule: MethodRule;
  readonly method: RawMethod;
  readonly rpc: DecisionRpc;
  /** Whether its requests may be recorded, which the general path does. */
  readonly isRecorded: boolean;
  /** Whether it is of gatehouse.v1: its answers have space for a consistency token. */
  readonly isQuery: boolean;
  /** Reads the scope of a body; false: only the general path can. */
  readonly scan: Readonly<Record<WireFormat, (body: Buffer, out: ScopeScan) => boolean>>;
};

/** Field numbers of the requests of workspace.v1 in authz_service.proto. */
export const DECISION_NUMBERS = {
  Check: { subjectSet: 5, projectId: 7, tenantId: 8, token: 9 },
  BatchCheck: { subjectSet: 0, projectId: 1, tenantId: 2, token: 4 },
  ListObjects: { subjectSet: 0, projectId: 4, tenantId: 5, token: 6 },
} as const satisfies Record<string, ScopeFieldNumbers>;

/** Field numbers of the requests of gatehouse.v1 in query_service.proto. */
export const QUERY_NUMBERS = {
  Check: { last: 2, number: 0 },
  BatchCheck: { last: 2, number: 0 },
  ListRelations: { last: 5, number: 0 },
  FilterObjects: { last: 5, number: 0 },
  Explain: { last: 3, number: 3 },
} as const satisfies Record<string, QueryFieldNumbers>;

/** The methods that the hot path serves. */
export const HOT_METHODS: readonly HotMethod[] = [
  decision('Check', 'check'),
  decision('BatchCheck', 'batchCheck'),
  decision('ListObjects', 'listObjects'),
  query('Check', 'queryCheck', 'QueryCheck'),
  query('BatchCheck', 'queryBatchCheck', 'QueryBatchCheck'),
  query('ListRelations', 'listRelations', 'ListRelations'),
  query('FilterObjects', 'filterObjects', 'FilterObjects'),
  query('Explain', 'explain', 'Explain'),
];

function decision(rpc: keyof typeof DECISION_NUMBERS, method: RawMethod): HotMethod {
  const path = `/workspace.v1.AuthzService/${rpc}`;
  const numbers = DECISION_NUMBERS[rpc];
  return {
    path,
    rule: mustRule(path),
    method,
    rpc,
    isRecorded: rpc !== 'ListObjects',
    isQuery: false,
    scan: { json: scanJsonScope, proto: (body, out) => scanProtoScope(body, numbers, out) },
  };
}

function query(name: keyof typeof QUERY_NUMBERS, method: QueryMethod, rpc: DecisionRpc): HotMethod {
  const path = `/gatehouse.v1.QueryService/${name}`;
  const numbers = QUERY_NUMBERS[name];
  return {
    path,
    rule: mustRule(path),
    method,
    rpc,
    isRecorded: false,
    isQuery: true,
    scan: { json: scanJsonQuery, proto: (body, out) => scanProtoQuery(body, numbers, out) },
  };
}

/** Some hundred items, which take milliseconds to decode. */
export const LARGE_BODY_BYTES = 32 * 1024;

/**
 * Hot. Counts a call and returns its credential, if `authorization` names a known caller within its rate that may call the
 * method somewhere.
 * Returns null for all others: the general path answers what is wrong.
 */
export function admitted(
  callers: CredentialSource,
  rule: MethodRule,
  authorization: string,
): Credential | null {
  const credential = callers.peek(authorization);
  if (credential === null || !credential.caller.canAcquire()) return null;
  if (!credential.caller.scopes.admitAnywhere(rule)) return null;
  credential.caller.admits();
  return credential;
}
