import type { RawMethod } from '../../protocol/shard-client.ts';
import type { Credential, CredentialSource } from '../callers/caller.ts';
import { type MethodRule, mustRule } from '../callers/method-rules.ts';
import type { DecisionRpc } from '../reads/decision-meter.ts';
import type { ScopeFieldNumbers } from './proto-scope.ts';

/** A method that has a hot path. */
export type HotMethod = {
  readonly path: string;
  /** What a caller needs for it. */
  readonly rule: MethodRule;
  readonly method: RawMethod;
  readonly rpc: DecisionRpc;
  /** Field numbers of the request message in authz_service.proto. */
  readonly numbers: ScopeFieldNumbers;
};

/** The methods that the hot path serves. */
export const HOT_METHODS: readonly HotMethod[] = (
  [
    {
      path: '/workspace.v1.AuthzService/Check',
      method: 'check',
      rpc: 'Check',
      numbers: { subjectSet: 5, projectId: 7, tenantId: 8, token: 9 },
    },
    {
      path: '/workspace.v1.AuthzService/BatchCheck',
      method: 'batchCheck',
      rpc: 'BatchCheck',
      numbers: { subjectSet: 0, projectId: 1, tenantId: 2, token: 4 },
    },
    {
      path: '/workspace.v1.AuthzService/ListObjects',
      method: 'listObjects',
      rpc: 'ListObjects',
      numbers: { subjectSet: 0, projectId: 4, tenantId: 5, token: 6 },
    },
  ] as const
).map((hot) => ({ ...hot, rule: mustRule(hot.path) }));

/** Some hundred items, which take milliseconds to decode. */
export const LARGE_BODY_BYTES = 32 * 1024;

/**
 * Hot. Counts a call of whoever `authorization` names, if it is known, within its rate, and may make the call somewhere;
 * null for all others: the general path says what is wrong.
 */
export function admitted(
  callers: CredentialSource,
  rule: MethodRule,
  authorization: string,
): Credential | null {
  const credential = callers.find(authorization);
  if (credential === null || !credential.caller.canAcquire()) return null;
  if (!credential.caller.scopes.admitAnywhere(rule)) return null;
  credential.caller.admits();
  return credential;
}
