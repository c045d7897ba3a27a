import type { DescMethod, JsonReadOptions, Message } from '@bufbuild/protobuf';
import { type DecodeLimits, isRefusedMessage } from '../../../decoding/decode-limits.ts';
import { MessageDecoder } from '../../../decoding/message-decoder.ts';
import { AppError } from '../../../shared/app-error.ts';
import type { MalformedError, MalformedMessage } from './call-errors.ts';
import type { Admitted, CallerPort } from './caller-port.ts';

export type MessageDecodingOptions = {
  readonly limits?: DecodeLimits | undefined;
  /** Options of protobuf's reader of JSON. */
  readonly json: Partial<JsonReadOptions>;
  readonly callers: CallerPort;
  readonly malformed: MalformedError;
  /** Callback for each message that is refused before it is built, with the reason. */
  readonly onRefused?: ((reason: string) => void) | undefined;
};

/**
 * Builds requests from their bytes. Before a large one is built, the decoder finds where it goes, and whether its caller may
 * go there.
 */
export class MessageDecoding {
  readonly #options: MessageDecodingOptions;
  readonly #decoder: MessageDecoder;

  constructor(options: MessageDecodingOptions) {
    this.#options = options;
    this.#decoder = new MessageDecoder(options.limits);
  }

  /**
   * Decodes a request of a method; returns a promise for all but small ones. In a stream of requests only the first one says
   * where it goes (`isPlaced`).
   * Errors: BODY_MALFORMED, BATCH_TOO_LARGE, FIELD_TOO_LARGE, SCOPE_REFUSED.
   */
  decode(
    method: DescMethod,
    isBinary: boolean,
    bytes: Uint8Array,
    admitted: Admitted | undefined,
    isPlaced: boolean,
  ): Message | Promise<Message> {
    const { input } = method;
    const { callers, json } = this.#options;
    const admit =
      isPlaced && admitted !== undefined ? callers.admitOf(method, admitted) : undefined;
    try {
      const decoded = this.#decoder.decode(input, isBinary, bytes, json, admit);
      if (!(decoded instanceof Promise)) return decoded;
      return decoded.catch((error: unknown) => {
        throw this.#shown(error, { input, isBinary, bytes });
      });
    } catch (error) {
      throw this.#shown(error, { input, isBinary, bytes });
    }
  }

  #shown(error: unknown, message: MalformedMessage): AppError {
    if (!(error instanceof AppError)) return this.#options.malformed(error as Error, message);
    if (isRefusedMessage(error.reason)) this.#options.onRefused?.(error.reason);
    return error;
  }
}
