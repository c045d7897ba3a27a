import {
  create,
  type DescMessage,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import {
  type BatchCheckRequest,
  BatchCheckRequestSchema,
  type CheckRequest,
  type ListObjectsRequest,
} from '../../gen/workspace/v1/authz_service_pb.ts';
import { withEncoded } from '../../http/connect/protocol/encoded-answer.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type {
  DecisionMethod,
  RawAnswer,
  RawScope,
  ReadScope,
  ShardClient,
  WireFormat,
} from '../../protocol/shard-client.ts';
import { DECISION_REQUESTS } from '../../requests/decode-request.ts';
import { AppError, errorFromData } from '../../shared/app-error.ts';
import { DECODE_TURNS, runInSlices } from '../../shared/slice-queue.ts';
import { isJsonWanted } from './list-answer.ts';

/** Items that are encoded in one step. */
const ITEMS_PER_STEP = 256;

type DecisionRequests = {
  readonly check: CheckRequest;
  readonly batchCheck: BatchCheckRequest;
  readonly listObjects: ListObjectsRequest;
};

/** A worker's answer in the format of the call. */
export type GivenAnswer = Exclude<RawAnswer, { readonly kind: 'error' }>;

/** Asks a worker, once it is known where. */
export type Ask = (scope: ReadScope) => Promise<GivenAnswer>;

/**
 * How the general path asks for a decision that it has decoded: as the hot path does, in the format in which the caller has asked, so that
 * every text stays what it was. Errors of what it gives: those of the worker; CANCELLED.
 */
export async function decisionAsk<M extends DecisionMethod>(
  shards: Pick<ShardClient, 'raw'>,
  method: M,
  request: DecisionRequests[M],
  context: HandlerContext,
): Promise<Ask> {
  const format = formatOf(context);
  const body = await encodedRequest(DECISION_REQUESTS[method], request, format);
  const { projectId, tenantId, atLeastConsistencyToken: token } = request;
  const expected = { projectId, tenantId, token };
  return (scope) => askRaw(shards, { method, format, body, expected }, scope, context.signal);
}

function formatOf(context: HandlerContext): WireFormat {
  return isJsonWanted(context) ? 'json' : 'proto';
}

type RawCall = {
  readonly method: DecisionMethod;
  readonly format: WireFormat;
  readonly body: Uint8Array;
  readonly expected: RawScope;
};

function askRaw(
  shards: Pick<ShardClient, 'raw'>,
  { method, format, body, expected }: RawCall,
  scope: ReadScope,
  signal: AbortSignal,
): Promise<GivenAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<GivenAnswer>();
  if (signal.aborted) return Promise.reject(cancelled());
  const onAbort = (): void => {
    running?.cancel();
    reject(cancelled());
  };
  signal.addEventListener('abort', onAbort, { once: true });
  const running = shards.raw(method, format, body, scope, expected, (answer) => {
    signal.removeEventListener('abort', onAbort);
    if (answer.kind === 'error') reject(errorFromData(answer.error));
    // The bytes are the worker's again once this returns.
    else if (answer.kind === 'body') resolve({ kind: 'body', body: Buffer.from(answer.body) });
    else resolve(answer);
  });
  return promise;
}

function cancelled(): AppError {
  return new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
}

/** The message of an answer; it is not decoded where its bytes leave as they came. */
export function messageOfAnswer<Desc extends DescMessage>(
  desc: Desc,
  answer: GivenAnswer,
  context: HandlerContext,
): MessageShape<Desc> {
  if (answer.kind !== 'body') throw new Error('a worker answers with a message here');
  return withEncoded(create(desc), [answer.body], isJsonWanted(context));
}

/** A long one is encoded in slices. O(bytes). */
async function encodedRequest(
  desc: DescMessage,
  request: DecisionRequests[DecisionMethod],
  format: WireFormat,
): Promise<Uint8Array> {
  if (!('items' in request) || request.items.length <= ITEMS_PER_STEP) {
    return format === 'proto' ? toBinary(desc, request) : Buffer.from(toJsonString(desc, request));
  }
  return await runInSlices(encodedBatch(request, format), DECODE_TURNS);
}

const EMPTY_LIST = '"items":[]';

/** In parts with some of the items each. */
function* encodedBatch(
  request: BatchCheckRequest,
  format: WireFormat,
): Generator<void, Uint8Array> {
  const desc = BatchCheckRequestSchema;
  const rest = { ...request, items: [] };
  const parts: Buffer[] = [];
  for (let at = 0; at < request.items.length; at += ITEMS_PER_STEP) {
    const part = create(desc, { items: request.items.slice(at, at + ITEMS_PER_STEP) });
    if (format === 'proto') parts.push(Buffer.from(toBinary(desc, part)));
    else {
      const items = toJsonString(desc, part).slice('{"items":['.length, -']}'.length);
      parts.push(Buffer.from(at === 0 ? items : `,${items}`));
    }
    yield;
  }
  if (format === 'proto') return Buffer.concat([toBinary(desc, rest), ...parts]);
  const [before = '', after = ''] = toJsonString(desc, rest, { alwaysEmitImplicit: true }).split(
    EMPTY_LIST,
  );
  const opening = `${before}${EMPTY_LIST.slice(0, -1)}`;
  return Buffer.concat([Buffer.from(opening), ...parts, Buffer.from(`]${after}`)]);
}
