import type { DescMethod, JsonReadOptions, Message } from '@bufbuild/protobuf';
import type { DecodeLimits } from '../../decoding/decode-limits.ts';
import { type Admit, MessageDecoder } from '../../decoding/message-decoder.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { mustAdmit, type OnRefused } from '../callers/guarded-service.ts';
import { RULES } from '../callers/method-rules.ts';
import { malformedJson } from './connect-error.ts';
import type { ConnectReason } from './connect-reason.ts';

export type MessageDecodingOptions = {
  readonly limits?: DecodeLimits | undefined;
  /** Of JSON. */
  readonly json: Partial<JsonReadOptions>;
  /** Told of each call beyond the scopes of its caller; without it nobody's scopes are looked at here. */
  readonly onOutOfScope?: OnRefused | undefined;
  /** Told of each message that is refused before it is built, with the reason. */
  readonly onRefused?: ((reason: string) => void) | undefined;
};

/** Requests from their bytes. Of a large one it is seen where it goes, and whether its caller may go there, before it is built. */
export class MessageDecoding {
  readonly #options: MessageDecodingOptions;
  readonly #decoder: MessageDecoder;

  constructor(options: MessageDecodingOptions) {
    this.#options = options;
    this.#decoder = new MessageDecoder(options.limits);
  }

  /**
   * The request of a method; a promise where it is no small one. Of a stream of requests the first one says where it goes (`isPlaced`).
   * Errors: BODY_MALFORMED, BATCH_TOO_LARGE, FIELD_TOO_LARGE, SCOPE_REFUSED.
   */
  decode(
    method: DescMethod,
    isBinary: boolean,
    bytes: Uint8Array,
    credential: Credential | undefined,
    isPlaced: boolean,
  ): Message | Promise<Message> {
    const { input } = method;
    const admit = isPlaced ? this.#admitOf(method, credential) : undefined;
    try {
      const decoded = this.#decoder.decode(input, isBinary, bytes, this.#options.json, admit);
      if (!(decoded instanceof Promise)) return decoded;
      return decoded.catch((error: unknown) => {
        throw this.#shown(error, method, isBinary);
      });
    } catch (error) {
      throw this.#shown(error, method, isBinary);
    }
  }

  #admitOf(method: DescMethod, credential: Credential | undefined): Admit | undefined {
    const { onOutOfScope } = this.#options;
    const rule = RULES.get(`/${method.parent.typeName}/${method.name}`);
    if (onOutOfScope === undefined || rule === undefined || credential === undefined) return;
    return (rest) => mustAdmit(credential, rule, rest, onOutOfScope);
  }

  #shown(error: unknown, { input }: DescMethod, isBinary: boolean): AppError {
    if (error instanceof AppError) {
      if (REFUSALS.has(error.reason)) this.#options.onRefused?.(error.reason);
      return error;
    }
    if (!isBinary) return malformedJson(error as Error, input);
    const problem = `the message cannot be decoded: ${(error as Error).message}`;
    return new AppError<ConnectReason>('BODY_MALFORMED', problem, {}, error);
  }
}

/** Of limits that only the decoder has; what is malformed is no news. */
const REFUSALS: ReadonlySet<string> = new Set(['BATCH_TOO_LARGE', 'FIELD_TOO_LARGE']);
