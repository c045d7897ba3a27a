import type { Message } from '@bufbuild/protobuf';
import { createContextKey, type Interceptor } from '@connectrpc/connect';
import { AppError } from '../../../shared/app-error.ts';
import { ENVELOPE_BYTES, enveloped, lengthInEnvelope } from '../../bodies/envelope.ts';
import type { ConnectReason } from '../protocol/connect-reason.ts';

/** The requests of a call that were built outside of Connect; null where there are none. */
export const kBuilt = createContextKey<BuiltMessages | null>(null, { description: 'built' });

/** Builds the message of an envelope. `isFirst` of its call. */
type Build = (message: Uint8Array, isFirst: boolean) => Message | Promise<Message>;

/** A message of a protocol that has flags on its envelopes; others are ends and trailers. */
const PLAIN = 0;

/**
 * Connect decodes the message of an envelope whole, whatever is in it. Of those that are not small, and of JSON with times, it gets empty
 * ones instead, and the interceptor puts the built ones in their places.
 */
export class BuiltMessages {
  readonly #build: Build;
  readonly #bytesMin: number;
  readonly #placeholder: Uint8Array;
  readonly #built = new Map<number, Message>();
  #sent = 0;
  #received = 0;

  /** `bytesMin`: shorter messages are left to Connect. */
  constructor(isJson: boolean, bytesMin: number, build: Build) {
    this.#build = build;
    this.#bytesMin = bytesMin;
    this.#placeholder = enveloped(Buffer.from(isJson ? '{}' : ''), false);
  }

  /** The body for Connect. What is no whole message, or longer than `bytesMax`, is left to it to refuse. Errors: those of `build`. */
  async *bodyOf(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
    const placeholder = this.#placeholder;
    for await (const bytes of body) {
      let leftFrom = 0;
      for (let at = 0; at + ENVELOPE_BYTES <= bytes.length;) {
        const length = lengthInEnvelope(bytes, at);
        const from = at + ENVELOPE_BYTES;
        const end = from + length;
        if (end > bytes.length || length > bytesMax) break;
        if (bytes[at] === PLAIN && length >= this.#bytesMin) {
          if (leftFrom < at) yield bytes.subarray(leftFrom, at);
          const message = await this.#build(bytes.subarray(from, end), this.#sent === 0);
          this.#built.set(this.#sent, message);
          yield placeholder;
          leftFrom = end;
        }
        this.#sent += 1;
        at = end;
      }
      if (leftFrom < bytes.length) yield bytes.subarray(leftFrom);
    }
  }

  /** What Connect decoded, with the built messages in their places. */
  async *messagesOf<M extends Message>(messages: AsyncIterable<M>): AsyncGenerator<M> {
    for await (const message of messages) {
      const built = this.#built.get(this.#received);
      this.#built.delete(this.#received);
      this.#received += 1;
      if (built === undefined) yield message;
      else if (built.$typeName === message.$typeName) yield built as M;
      else throw new AppError<ConnectReason>('INTERNAL', 'a message is of another type');
    }
  }
}

/** Stands behind the guard, and before whatever looks at messages. */
export const putInBuilt: Interceptor = (next) => (request) => {
  const built = request.contextValues.get(kBuilt);
  if (built === null || !request.stream) return next(request);
  return next({ ...request, message: built.messagesOf(request.message) });
};
