import { create } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { DECODE_TURNS } from '../../decoding/slice-queue.ts';
import {
  type ImportTuplesRequest,
  type StreamTuplesRequest,
  type StreamTuplesResponse,
  StreamTuplesResponseSchema,
  type TupleService,
} from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { fieldError } from '../../model/field-error.ts';
import { requiredError } from '../../model/names.ts';
import type { GuardedWrites } from '../../services/bulk/guarded-write.ts';
import type { TupleDelete } from '../../services/bulk/tuple-delete.ts';
import type { TupleExport } from '../../services/bulk/tuple-export.ts';
import type { TupleImport } from '../../services/bulk/tuple-import.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { RawTuple } from '../../services/tuple-requests.ts';
import type { TupleWatch } from '../../services/watch/tuple-watch.ts';
import {
  type CallDefaults,
  callerOfCall,
  deadlineOf,
  requestIdOfCall,
  sharedNowMs,
} from '../connect/call-context.ts';
import { tupleToProto } from '../rpc/tuple-to-proto.ts';
import { assertNoUnknownFields } from '../rpc/unknown-fields.ts';
import { tupleOfRow, tuplesToBinary } from './tuple-bytes.ts';
import { watchEventToProto } from './watch-event.ts';

export type TupleServiceOptions = CallDefaults & {
  readonly guardedWrites: GuardedWrites;
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  readonly tupleDelete: TupleDelete;
  readonly tupleWatch: TupleWatch;
};

type Handlers = ServiceImpl<typeof TupleService>;

/** The handlers of TupleService: tuples in bulk, and what became of them. */
export function createTupleService(options: TupleServiceOptions): Partial<Handlers> {
  const { guardedWrites, tupleExport, tupleDelete } = options;
  return {
    async writeTuples(request, context) {
      assertNoUnknownFields(request);
      const { projectId, tenantId, updates, preconditions, idempotencyKey } = request;
      const written = await guardedWrites.write({
        projectId,
        tenantId,
        updates,
        preconditions,
        idempotencyKey,
        meta: metaOf(context, deadlineOf(context, options)),
      });
      return { consistencyToken: written.token, replayed: written.isReplayed };
    },

    streamTuples: (request, context) => streamed(tupleExport, request, context),

    importTuples: (requests, context) => imported(options, requests, context),

    async *watch(request, context) {
      assertNoUnknownFields(request);
      for await (const event of options.tupleWatch.watch(request, context.signal)) {
        yield watchEventToProto(event);
      }
    },

    async deleteTuples(request, context) {
      assertNoUnknownFields(request);
      const { projectId, tenantId, filter, dryRun, unchangedSince, countMax } = request;
      const { count, token } = await tupleDelete.delete({
        projectId,
        tenantId,
        filter,
        dryRun,
        unchangedSince,
        countMax,
        meta: metaOf(context, deadlineOf(context, options)),
        signal: context.signal,
      });
      return { count: BigInt(count), consistencyToken: token };
    },
  };
}

/** As long as the caller allows: streams may be of any length. */
function metaOfStream(context: HandlerContext): WriteMeta {
  return metaOf(context, sharedNowMs() + (context.timeoutMs() ?? Infinity));
}

function metaOf(context: HandlerContext, deadlineMs: number): WriteMeta {
  const requestId = requestIdOfCall(context);
  const caller = callerOfCall(context);
  return { rpc: context.method.name, actingUserId: null, caller, requestId, deadlineMs };
}

async function* streamed(
  tuples: TupleExport,
  request: StreamTuplesRequest,
  context: HandlerContext,
): AsyncGenerator<StreamTuplesResponse> {
  assertNoUnknownFields(request);
  const { projectId, tenantId, allTenants, filter, cursor } = request;
  const token = request.atLeastConsistencyToken;
  const isJson = context.requestHeader.get('content-type')?.includes('json') === true;
  const asked = { projectId, tenantId, allTenants, filter, token, cursor };
  for await (const part of tuples.stream(asked, context.signal)) {
    const message = create(StreamTuplesResponseSchema, {
      cursor: part.cursor,
      consistencyToken: part.token,
      revisionChanged: part.isRevisionChanged,
    });
    if (isJson) {
      for (let i = 0; i < part.page.rows; i++) {
        message.tuples.push(tupleToProto(part.shard, tupleOfRow(part.page, i)));
      }
    } else {
      const data = tuplesToBinary(part.shard, part.page);
      // Unknown fields are written as they stand; the writer adds the first tag.
      if (data !== undefined)
        message.$unknown = [{ no: 1, wireType: WireType.LengthDelimited, data }];
    }
    yield message;
  }
}

async function imported(
  { tupleImport }: TupleServiceOptions,
  requests: AsyncIterable<ImportTuplesRequest>,
  context: HandlerContext,
): ReturnType<Handlers['importTuples']> {
  const iterator = requests[Symbol.asyncIterator]();
  try {
    return await importedFrom(tupleImport, iterator, context);
  } finally {
    // Lets go of the body wherever reading ended; not awaited, since it waits for what is being read.
    iterator.return?.().catch(ignoreEnded);
  }
}

function ignoreEnded(): void {
  // What failed was told by reading.
}

async function importedFrom(
  tupleImport: TupleImport,
  iterator: AsyncIterator<ImportTuplesRequest>,
  context: HandlerContext,
): ReturnType<Handlers['importTuples']> {
  const first = await iterator.next();
  const options = first.done === true ? undefined : first.value.options;
  if (first.done === true || options === undefined) throw requiredError('options');
  assertNoUnknownFields(first.value);
  const { projectId, tenantId, dryRun, importId } = options;
  const result = await tupleImport.import(
    {
      projectId,
      tenantId,
      dryRun,
      importId,
      meta: metaOfStream(context),
      signal: context.signal,
    },
    batchesOf(first.value, iterator),
  );
  return {
    received: BigInt(result.received),
    written: BigInt(result.written),
    unchanged: BigInt(result.unchanged),
    consistencyToken: result.token,
    resumedAt: BigInt(result.resumedAt),
  };
}

async function* batchesOf(
  first: ImportTuplesRequest,
  rest: AsyncIterator<ImportTuplesRequest>,
): AsyncGenerator<readonly RawTuple[]> {
  yield* batchesIn(first.tuples);
  for (;;) {
    const { done, value } = await rest.next();
    if (done === true) return;
    assertNoUnknownFields(value);
    if (value.options !== undefined) {
      throw fieldError('options', 'belong to the first message of the stream');
    }
    yield* batchesIn(value.tuples);
  }
}

/** Tuples that are checked in one go. */
const BATCH_TUPLES = 1_024;

/** All of a message; others get their turn between two batches of it. */
async function* batchesIn(tuples: readonly RawTuple[]): AsyncGenerator<readonly RawTuple[]> {
  if (tuples.length <= BATCH_TUPLES) return yield tuples;
  for (let from = 0; from < tuples.length; from += BATCH_TUPLES) {
    yield tuples.slice(from, from + BATCH_TUPLES);
    await DECODE_TURNS.turn();
  }
}
