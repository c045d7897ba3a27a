import { UNSCANNED_BYTES_MAX } from '../../decoding/decode-limits.ts';
import type { RequestBatch, ScopeEntry } from '../../protocol/messages.ts';
import {
  RAW_BODY_END,
  RAW_BODY_START,
  RAW_DEADLINE_MS,
  RAW_DEADLINE_STATED,
  RAW_MIN_REVISION,
  RAW_OPCODE,
  RAW_REQUEST_ID,
  RAW_SCOPE,
  RAW_TOKEN,
  rawMethodOf,
  wireFormatOf,
} from '../../protocol/messages.ts';
import type { RawMethod } from '../../protocol/shard-client.ts';
import { type DecodedRequest, decodeRequest, isQuery } from '../../requests/decode-request.ts';
import type { BatchScan } from '../raw/batch-scan.ts';
import { equalsText, type RawFields } from '../raw/raw-fields.ts';
import type { BatchBodies } from './batch-bodies.ts';
import type { JobHead } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';

/** About 128 items of 128 bytes each, which mostly end within a slice. */
const SHORT_BYTES_MAX = 16 * 1024;
/** The scanners of a Check and of a ListObjects do not pause: longer ones are decoded. */
const SCANNED_WHOLE_BYTES_MAX = 64 * 1024;

/**
 * A raw request in its worker, which reads it: by a scanner where it is plain, and else by decoding it in slices. The
 * project, tenant, token and version of the model that it names must be those that the gateway routed and guarded.
 */
export class ReceivedRequest implements JobHead {
  readonly requestId: number;
  readonly scope: ScopeEntry;
  readonly minRevision: number;
  readonly deadlineMs: number;
  readonly isDeadlineStated: boolean;
  readonly method: RawMethod;
  readonly isJson: boolean;
  readonly source: BatchBodies;
  /** The decoded request, once read and if no scanner took it; null: `fields` has its positions in `source`. */
  decoded: DecodedRequest | null = null;
  readonly #context: JobContext;
  readonly #start: number;
  readonly #end: number;
  readonly #token: string;
  /** A long batch has it until it ends; all others share the scratch of the thread. */
  #scan: BatchScan | null = null;
  #state: 'unread' | 'scanning' | 'kept' = 'unread';
  #steps: Iterator<void, DecodedRequest> | null = null;
  #decodingBytes = 0;

  constructor(context: JobContext, batch: RequestBatch, source: BatchBodies, field: number) {
    const { raw } = batch;
    const scope = batch.scopes[raw[field + RAW_SCOPE] as number];
    if (scope === undefined) throw new Error('a raw request without scope');
    const opcode = raw[field + RAW_OPCODE] as number;
    this.requestId = raw[field + RAW_REQUEST_ID] as number;
    this.scope = scope;
    this.minRevision = raw[field + RAW_MIN_REVISION] as number;
    this.deadlineMs = raw[field + RAW_DEADLINE_MS] as number;
    this.isDeadlineStated = raw[field + RAW_DEADLINE_STATED] === 1;
    this.method = rawMethodOf(opcode);
    this.isJson = wireFormatOf(opcode) === 'json';
    this.source = source;
    this.#context = context;
    this.#start = raw[field + RAW_BODY_START] as number;
    this.#end = raw[field + RAW_BODY_END] as number;
    this.#token = batch.tokens[raw[field + RAW_TOKEN] as number] ?? '';
    source.opened();
  }

  /** Bytes of its body. */
  get bytes(): number {
    return this.#end - this.#start;
  }

  /** Whether it takes long to read, to evaluate and to answer. */
  get isLong(): boolean {
    return this.bytes > SHORT_BYTES_MAX;
  }

  /** Positions that a scanner found; those of a short request are valid until the next scan. */
  get fields(): RawFields {
    return (this.#scan ?? this.#context).fields;
  }

  /**
   * Reads it, anew where what was found may have gone since; true once it is read, false where the monotonic clock passed `sliceEndMs`
   * before. Errors: BODY_MALFORMED, FIELD_*, BATCH_TOO_LARGE, BODY_MEMORY_EXHAUSTED; an Error where it names another scope.
   */
  read(sliceEndMs: number): boolean {
    if (this.decoded !== null || this.#state === 'kept') return true;
    if (this.#steps === null) {
      const isScanned = this.#scanned(sliceEndMs);
      if (isScanned === null) return false;
      // A body that is not ASCII, or of another scope, is checked once more.
      if (isScanned && this.#isScopeScanned()) {
        if (this.#scan !== null) this.#state = 'kept';
        return true;
      }
      this.#releaseScan();
      this.#steps = this.#decode();
    }
    while (performance.now() < sliceEndMs) {
      const step = this.#steps.next();
      if (step.done !== true) continue;
      this.#steps = null;
      this.decoded = step.value;
      return true;
    }
    return false;
  }

  /** It has its answer or its error. */
  ended(): void {
    this.#releaseScan();
    this.#steps = null;
    this.decoded = null;
    this.#context.decodingMemory.release(this.#decodingBytes);
    this.#decodingBytes = 0;
    this.source.closed();
  }

  #releaseScan(): void {
    if (this.#scan !== null) this.#context.releaseScan(this.#scan);
    this.#scan = null;
  }

  /** Whether a scanner takes it; null: it continues in the next slice. */
  #scanned(sliceEndMs: number): boolean | null {
    const { bytes } = this.source;
    const [start, end] = [this.#start, this.#end];
    if (this.method === 'batchCheck' && this.isLong) {
      this.#scan ??= this.#context.takeScan();
      const scanner = this.isJson ? this.#scan.json : this.#scan.proto;
      const isScanned =
        this.#state === 'scanning'
          ? scanner.resumeBatch(bytes, sliceEndMs)
          : scanner.startBatch(bytes, start, end, sliceEndMs);
      this.#state = isScanned === null ? 'scanning' : 'unread';
      return isScanned;
    }
    if (end - start > SCANNED_WHOLE_BYTES_MAX || isQuery(this.method)) return false;
    const scanner = this.isJson ? this.#context.json : this.#context.proto;
    return scanner[this.method](bytes, start, end);
  }

  #isScopeScanned(): boolean {
    const { scope: at } = this.fields;
    const { bytes } = this.source;
    const { expectedProjectId, expectedTenantId } = this.scope;
    return (
      equalsText(bytes, at[0] as number, at[1] as number, expectedProjectId) &&
      equalsText(bytes, at[2] as number, at[3] as number, expectedTenantId) &&
      equalsText(bytes, at[4] as number, at[5] as number, this.#token)
    );
  }

  *#decode(): Generator<void, DecodedRequest> {
    const { decoder, decodingMemory, batchItemsMax } = this.#context;
    const length = this.#end - this.#start;
    decodingMemory.acquire(length);
    this.#decodingBytes = length;
    const bytes = this.#ownBytes();
    const format = this.isJson ? 'json' : 'proto';
    const projectIdOf = (): string => this.scope.projectId;
    const reading = { projectIdOf, itemsMax: batchItemsMax };
    const decoded = yield* decodeRequest(decoder, this.method, format, bytes, reading);
    this.#assertScope(decoded);
    return decoded;
  }

  /** A copy where the bytes may be the gateway's again before they are decoded: short JSON becomes a text at once. */
  #ownBytes(): Uint8Array {
    const { bytes } = this.source;
    const isAtOnce = this.isJson && this.bytes <= UNSCANNED_BYTES_MAX;
    const isShared = bytes.buffer instanceof SharedArrayBuffer;
    return isShared && !isAtOnce
      ? bytes.slice(this.#start, this.#end)
      : bytes.subarray(this.#start, this.#end);
  }

  /** The gateway routed, guarded and counted the request by the scope that it read. Both read alike: a difference is a fault of ours. */
  #assertScope(decoded: DecodedRequest): void {
    const { projectId, tenantId, token, modelVersion = 0 } = decoded.named;
    const { expectedProjectId, expectedTenantId, expectedVersion = 0 } = this.scope;
    const isExpected =
      projectId === expectedProjectId &&
      tenantId === expectedTenantId &&
      token === this.#token &&
      modelVersion === expectedVersion;
    if (isExpected) return;
    this.#context.stats.scopeMismatch();
    throw new Error('a request names another scope than the gateway has read');
  }
}
