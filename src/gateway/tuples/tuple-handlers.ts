import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  type ImportTuplesRequest,
  type ImportTuplesResponseSchema,
  type StreamTuplesRequest,
  type StreamTuplesResponse,
  StreamTuplesResponseSchema,
  type TupleService,
} from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { requiredError } from '../../model/names.ts';
import { fieldError } from '../../model/reasons.ts';
import { timestampFromMicroseconds, tupleToProto } from '../../requests/tuple-to-proto.ts';
import type { GuardedWrites } from '../../services/bulk/guarded-write.ts';
import type { TupleDelete } from '../../services/bulk/tuple-delete.ts';
import type { TupleExport } from '../../services/bulk/tuple-export.ts';
import type { ImportTuplesResult, TupleImport } from '../../services/bulk/tuple-import.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { ImportedTuple } from '../../services/tuples/tuple-requests.ts';
import type { TupleWatch } from '../../services/watch/tuple-watch.ts';
import { DECODE_TURNS } from '../../shared/slice-queue.ts';
import { type CallDefaults, deadlineOf, sharedNowMs } from '../connect/call-context.ts';
import { writeMetaOf } from '../rpc/write-meta.ts';
import { tupleOfRow, tuplesToBinary, writtenAtOf } from './tuple-bytes.ts';
import { watchEventToProto } from './watch-event.ts';

export type TupleHandlersOptions = CallDefaults & {
  readonly guardedWrites: GuardedWrites;
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  readonly tupleDelete: TupleDelete;
  readonly tupleWatch: TupleWatch;
};

/** The handlers of TupleService: tuples in bulk, and what became of them. */
export function createTupleHandlers(
  options: TupleHandlersOptions,
): Partial<ServiceImpl<typeof TupleService>> {
  const { guardedWrites, tupleExport, tupleDelete } = options;
  return {
    async writeTuples(request, context) {
      assertNoUnknownFields(request);
      const { projectId, tenantId, updates, modes, preconditions, idempotencyKey } = request;
      const { modelVersion } = request;
      const written = await guardedWrites.write({
        projectId,
        tenantId,
        updates,
        modes,
        preconditions,
        idempotencyKey,
        modelVersion,
        meta: writeMetaOf(context, deadlineOf(context, options)),
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
      const { projectId, tenantId, filter, wholeNamespace, wholeTenant } = request;
      const { dryRun, unchangedSince, countMax } = request;
      const { count, token } = await tupleDelete.delete({
        projectId,
        tenantId,
        filter,
        wholeNamespace,
        wholeTenant,
        dryRun,
        unchangedSince,
        countMax,
        meta: writeMetaOf(context, deadlineOf(context, options)),
        signal: context.signal,
      });
      return { count: BigInt(count), consistencyToken: token };
    },
  };
}

/** The deadline is the caller's own: streams may be of any length. */
function metaOfStream(context: HandlerContext): WriteMeta {
  return writeMetaOf(context, sharedNowMs() + (context.timeoutMs() ?? Infinity));
}

async function* streamed(
  tuples: TupleExport,
  request: StreamTuplesRequest,
  context: HandlerContext,
): AsyncGenerator<StreamTuplesResponse> {
  assertNoUnknownFields(request);
  const { projectId, tenantId, allTenants, filter, cursor, withWrittenAt } = request;
  const token = request.atLeastConsistencyToken;
  const isJson = context.requestHeader.get('content-type')?.includes('json') === true;
  const asked = { projectId, tenantId, allTenants, filter, token, cursor };
  for await (const part of tuples.stream(asked, context.signal)) {
    const message = create(StreamTuplesResponseSchema, {
      cursor: part.cursor,
      consistencyToken: part.token,
      revisionChanged: part.isRevisionChanged,
    });
    for (let i = 0; withWrittenAt && i < part.page.rows; i++) {
      message.writtenAt.push(timestampFromMicroseconds(writtenAtOf(part.page, i) ?? 0n));
    }
    if (isJson) {
      for (let i = 0; i < part.page.rows; i++) {
        message.tuples.push(tupleToProto(part.shard, tupleOfRow(part.page, i)));
      }
    } else {
      const data = tuplesToBinary(part.shard, part.page);
      // Unknown fields are written unchanged; the writer adds the first tag.
      if (data !== undefined)
        message.$unknown = [{ no: 1, wireType: WireType.LengthDelimited, data }];
    }
    yield message;
  }
}

async function imported(
  { tupleImport }: TupleHandlersOptions,
  requests: AsyncIterable<ImportTuplesRequest>,
  context: HandlerContext,
): ReturnType<ServiceImpl<typeof TupleService>['importTuples']> {
  const iterator = requests[Symbol.asyncIterator]();
  try {
    return await importedFrom(tupleImport, iterator, context);
  } finally {
    // Releases the body wherever reading ended; not awaited, since it waits for what is being read.
    iterator.return?.().catch(ignoreEnded);
  }
}

function ignoreEnded(): void {
  // The read of the stream has thrown the same error.
}

async function importedFrom(
  tupleImport: TupleImport,
  iterator: AsyncIterator<ImportTuplesRequest>,
  context: HandlerContext,
): ReturnType<ServiceImpl<typeof TupleService>['importTuples']> {
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
  return importToProto(result);
}

/** The response form of what an import did. */
export function importToProto(
  result: ImportTuplesResult,
): MessageInitShape<typeof ImportTuplesResponseSchema> {
  return {
    received: BigInt(result.received),
    written: BigInt(result.written),
    unchanged: BigInt(result.unchanged),
    consistencyToken: result.token,
    resumedAt: BigInt(result.resumedAt),
    seatsLeftOut: BigInt(result.seats.count),
    warnings: seatWarnings(result.seats),
  };
}

function seatWarnings({ count, examples }: ImportTuplesResult['seats']): string[] {
  if (count === 0) return [];
  const named = examples.join(', ') + (count > examples.length ? ', …' : '');
  return [`${count} tuples of the seat namespace were left out, AssignSeat writes them: ${named}`];
}

async function* batchesOf(
  first: ImportTuplesRequest,
  rest: AsyncIterator<ImportTuplesRequest>,
): AsyncGenerator<readonly ImportedTuple[]> {
  yield* batchesIn(timed(first));
  for (;;) {
    const { done, value } = await rest.next();
    if (done === true) return;
    assertNoUnknownFields(value);
    if (value.options !== undefined) {
      throw fieldError('options', 'belong to the first message of the stream');
    }
    yield* batchesIn(timed(value));
  }
}

/** The tuples of a message with the times at which they were written, where it has them. */
function timed({ tuples, writtenAt }: ImportTuplesRequest): readonly ImportedTuple[] {
  if (writtenAt.length === 0) return tuples;
  if (writtenAt.length !== tuples.length) {
    throw fieldError('written_at', 'must have one for each of tuples, or be empty');
  }
  return tuples.map((tuple, at) => {
    const time = writtenAt[at];
    const isKnown = time !== undefined && (time.seconds !== 0n || time.nanos !== 0);
    return isKnown ? { ...tuple, writtenAt: time } : tuple;
  });
}

/** Tuples that are checked in one go. */
const BATCH_TUPLES = 1_024;

/** All of a message; others get their turn between two batches of it. */
async function* batchesIn(
  tuples: readonly ImportedTuple[],
): AsyncGenerator<readonly ImportedTuple[]> {
  if (tuples.length <= BATCH_TUPLES) return yield tuples;
  for (let from = 0; from < tuples.length; from += BATCH_TUPLES) {
    yield tuples.slice(from, from + BATCH_TUPLES);
    await DECODE_TURNS.turn();
  }
}
