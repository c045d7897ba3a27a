import type { DecodeLimits } from '../../decoding/decode-limits.ts';
import { MessageDecoder } from '../../decoding/message-decoder.ts';
import type { RawMethod, WireFormat } from '../../protocol/shard-client.ts';
import { decodeRequest, isQuery } from '../../requests/decode-request.ts';
import { BATCH_ITEMS } from '../../requests/request-lists.ts';
import { DECODE_TURNS, runInSlices } from '../../shared/slice-queue.ts';
import { JsonScanner } from '../../workers/raw/json-scanner.ts';
import { ProtoScanner } from '../../workers/raw/proto-scanner.ts';
import { createRawFields } from '../../workers/raw/raw-fields.ts';
import { LARGE_BODY_BYTES } from './hot-methods.ts';

/** Reads requests for decisions, and other queries, that no worker reads, since they are refused before. */
export class DecisionReader {
  readonly #decoder: MessageDecoder;
  readonly #itemsMax: number;
  readonly #json: JsonScanner;
  readonly #proto: ProtoScanner;

  constructor(limits: DecodeLimits) {
    this.#decoder = new MessageDecoder(limits);
    this.#itemsMax = limits.items?.get(BATCH_ITEMS)?.max ?? Infinity;
    const fields = createRawFields();
    this.#json = new JsonScanner(fields, this.#itemsMax);
    this.#proto = new ProtoScanner(fields, this.#itemsMax);
  }

  /**
   * Whether a request is short, and valid as far as a worker would check it. False: `read` finds out. O(bytes), no allocation.
   */
  isPlain(method: RawMethod, format: WireFormat, bytes: Uint8Array): boolean {
    if (bytes.length > LARGE_BODY_BYTES || isQuery(method)) return false;
    const scanner = format === 'json' ? this.#json : this.#proto;
    return scanner[method](bytes, 0, bytes.length);
  }

  /** Resolves once it is known that nothing is wrong with a request. Errors: as `decodeRequest`. */
  async read(
    method: RawMethod,
    format: WireFormat,
    bytes: Uint8Array,
    projectIdOf: (projectId: string) => string,
  ): Promise<void> {
    const steps = decodeRequest(this.#decoder, method, format, bytes, {
      projectIdOf,
      itemsMax: this.#itemsMax,
    });
    await runInSlices(steps, DECODE_TURNS);
  }
}
