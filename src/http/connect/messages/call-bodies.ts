import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { UNSCANNED_BYTES_MAX } from '../../../decoding/decode-limits.ts';
import { holdsReadValues } from '../../../decoding/json-values.ts';
import { type BodyBudget, NO_OWNER } from '../../bodies/body-budget.ts';
import type { CallerPort } from '../protocol/caller-port.ts';
import { hasEnvelopes } from '../protocol/content-types.ts';
import type { UniversalRequest } from '../protocol/universal.ts';
import { BuiltMessages, kBuilt } from './built-messages.ts';
import { decompressedMessages, kDecompressed } from './counted-messages.ts';
import type { MessageDecoding } from './message-decoding.ts';

const ENVELOPE_ENCODINGS = ['grpc-encoding', 'connect-content-encoding'];

/** Reads the messages of calls within bounds: what they are decompressed to counts, and large ones are built in slices. */
export class CallBodies {
  readonly #budget: BodyBudget;
  readonly #decoding: MessageDecoding;
  readonly #readMaxBytes: number;
  readonly #key: CallerPort['key'];

  constructor(
    budget: BodyBudget,
    decoding: MessageDecoding,
    readMaxBytes: number,
    key: CallerPort['key'],
  ) {
    this.#key = key;
    this.#budget = budget;
    this.#decoding = decoding;
    this.#readMaxBytes = readMaxBytes;
  }

  /** What compressed messages become counts as the caller's until `work`, which never rejects, is done. */
  async counted(
    handler: UniversalHandler,
    request: UniversalRequest,
    work: (request: UniversalRequest) => Promise<void>,
  ): Promise<void> {
    const { header, contextValues } = request;
    const isWhole = header.has('content-encoding');
    const isEnveloped = ENVELOPE_ENCODINGS.some((name) => header.get(name) === 'gzip');
    if (!isWhole && !isEnveloped) return work(this.#built(handler, request));
    const owner = contextValues?.get(this.#key).caller.name ?? NO_OWNER;
    const hold = this.#budget.open(owner, { cutForCapacity: holdsOn });
    contextValues?.set(kDecompressed, hold);
    const { body } = request;
    const isOpen = isEnveloped && hasEnvelopes(header.get('content-type') ?? '');
    const plain =
      isOpen && isIterable(body) ? decompressedMessages(body, this.#readMaxBytes, hold) : body;
    try {
      await work(this.#built(handler, { ...request, body: plain }));
    } finally {
      hold.release();
    }
  }

  /**
   * Builds the messages in envelopes here, where Connect would build them whole and unlooked at; small JSON is left to it, unless protobuf
   * would read times in it.
   */
  #built(handler: UniversalHandler, request: UniversalRequest): UniversalRequest {
    const { header, body, contextValues } = request;
    const type = header.get('content-type') ?? '';
    if (!hasEnvelopes(type) || !isIterable(body)) return request;
    const isJson = type.includes('+json');
    const admitted = contextValues?.get(this.#key);
    const isLeft = isJson && !holdsReadValues(handler.method.input);
    const bytesMin = isLeft ? UNSCANNED_BYTES_MAX + 1 : 1;
    const built = new BuiltMessages(isJson, bytesMin, (message, isFirst) =>
      this.#decoding.decode(handler.method, !isJson, message, admitted, isFirst),
    );
    contextValues?.set(kBuilt, built);
    return { ...request, body: built.bodyOf(body, this.#readMaxBytes) };
  }
}

function isIterable(body: UniversalRequest['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

function holdsOn(): void {
  // Never called: it waits for nobody.
}
