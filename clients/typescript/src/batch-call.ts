import { create, toJson } from '@bufbuild/protobuf';
import { type Client, Code, ConnectError } from '@connectrpc/connect';
import { codeFromHttpStatus, errorFromJson } from '@connectrpc/connect/protocol-connect';
import {
  type QueryService,
  QueryScopeSchema,
} from '../../../src/gen/gatehouse/v1/query_service_pb.ts';
import type { JsonObject, Question, QueryOptions } from './questions.ts';
import { mutable, questionInit, scopeInit } from './questions.ts';
import type { ShardName } from './session.ts';
import { shardHeader, type TransportOptions, valueOf } from './transport.ts';

/** A BatchCheck to be sent. */
export type BatchRequest = {
  readonly shard: ShardName;
  readonly token: string;
  readonly options: Pick<QueryOptions, 'contextualTuples' | 'exact' | 'modelVersion'>;
  readonly items: readonly {
    readonly question: Question;
    readonly context: JsonObject | undefined;
  }[];
};

/** What comes back, in the order of the items. */
export type BatchAnswers = {
  readonly results: readonly {
    readonly allowed: boolean;
    readonly undecided: boolean;
    readonly unknownRelation: boolean;
    readonly error: string;
    readonly errorReason: string;
  }[];
  readonly consistencyToken: string;
};

/** When a call ends. */
export type BatchLimits = { readonly signal: AbortSignal; readonly timeoutMs: number | undefined };

/** Sends a BatchCheck. Errors: what `errorFrom` takes. */
export type BatchCall = (request: BatchRequest, limits: BatchLimits) => Promise<BatchAnswers>;

/** BatchCheck by a generated client: for transports of the caller's own. */
export function batchByClient(queries: Client<typeof QueryService>): BatchCall {
  return ({ shard, token, options, items }, { signal, timeoutMs }) =>
    queries.batchCheck(
      {
        scope: scopeInit(options, shard, token),
        items: items.map(({ question, context }) => ({
          question: questionInit(question),
          ...(context === undefined ? {} : { context: mutable(context) }),
        })),
      },
      { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    );
}

type WireAnswers = {
  readonly results?: readonly {
    readonly allowed?: boolean;
    readonly undecided?: boolean;
    readonly unknown_relation?: boolean;
    readonly error?: string;
    readonly error_reason?: string;
  }[];
  readonly consistency_token?: string;
};

/**
 * BatchCheck by `fetch` alone, in the JSON of Connect. It is the one call that is made thousands of times a second:
 * building messages and reading them would cost as much as `fetch` itself.
 */
export function batchByFetch(options: TransportOptions): BatchCall {
  const url = `${options.baseUrl.replace(/\/+$/, '')}/gatehouse.v1.QueryService/BatchCheck`;
  return async (request, { signal, timeoutMs }) => {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      'connect-protocol-version': '1',
      ...shardHeader(request.shard),
    };
    if (timeoutMs !== undefined) headers['connect-timeout-ms'] = String(timeoutMs);
    if (options.token !== undefined) {
      headers['authorization'] = `Bearer ${await valueOf(options.token)}`;
    }
    const call = options.fetch ?? fetch;
    const body = JSON.stringify({ scope: scopeJson(request), items: request.items.map(itemJson) });
    const response = await call(url, { method: 'POST', headers, body, signal, redirect: 'error' });
    if (!response.ok) throw await failureOf(response);
    const { results = [], consistency_token = '' } = (await response.json()) as WireAnswers;
    return {
      consistencyToken: consistency_token,
      results: results.map((one) => ({
        allowed: one.allowed === true,
        undecided: one.undecided === true,
        unknownRelation: one.unknown_relation === true,
        error: one.error ?? '',
        errorReason: one.error_reason ?? '',
      })),
    };
  };
}

function scopeJson({ shard, token, options }: BatchRequest): unknown {
  if (options.contextualTuples === undefined) {
    return {
      project_id: shard.project,
      tenant_id: shard.tenant,
      at_least_consistency_token: token,
      ...(options.exact === true ? { userset_mode: 'USERSET_MODE_EXACT' } : {}),
      ...(options.modelVersion === undefined ? {} : { model_version: options.modelVersion }),
    };
  }
  return toJson(QueryScopeSchema, create(QueryScopeSchema, scopeInit(options, shard, token)));
}

function itemJson({ question, context }: BatchRequest['items'][number]): unknown {
  const { namespace, objectId, relation, subject } = question;
  const who =
    typeof subject === 'string'
      ? { user_id: subject }
      : {
          set: {
            namespace: subject.namespace,
            object_id: subject.objectId,
            relation: subject.relation ?? '',
          },
        };
  return { question: { namespace, object_id: objectId, relation, subject: who }, context };
}

/** The error of an answer; a proxy's page is one by its status. */
async function failureOf(response: Response): Promise<ConnectError> {
  const code = codeFromHttpStatus(response.status);
  const fallback = new ConnectError(`HTTP ${response.status}`, code);
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('application/json')) return fallback;
  try {
    return errorFromJson(JSON.parse(text), response.headers, fallback);
  } catch (error) {
    return error instanceof ConnectError
      ? error
      : new ConnectError('a broken answer', Code.Unknown);
  }
}
