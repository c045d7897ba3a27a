import { AppError } from '../../../shared/app-error.ts';
import type { BodyBudget } from '../../bodies/body-budget.ts';
import { ENVELOPE_BYTES } from '../../bodies/envelope.ts';
import { bodyTooLarge } from '../../bodies/gunzip-limited.ts';
import { StreamedBody } from '../../bodies/streamed-body.ts';
import type { UnitEnds } from '../../bodies/unit-ends.ts';
import type { HttpExchange } from '../../exchange/http-exchange.ts';
import type { Http2RequestStream } from '../../http2/request-stream.ts';
import type { ConnectReason } from '../protocol/connect-reason.ts';

/** A request body that is wanted whole: one promise instead of an iteration. */
export class WholeBody implements AsyncIterable<Uint8Array> {
  readonly whole: Promise<Uint8Array>;

  constructor(whole: Promise<Uint8Array>) {
    this.whole = whole;
    // Nobody may be reading it: a refused call never does.
    whole.catch(ignoreUnread);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    yield await this.whole;
  }
}

/** A response body that is known whole. */
export class BytesBody implements AsyncIterable<Uint8Array> {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  // oxlint-disable-next-line require-await -- an async iterable by contract
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    yield this.bytes;
  }
}

/** The error of a call whose client has gone. */
export function cancelled(): AppError {
  return new AppError<ConnectReason>('CANCELLED', 'the caller cancelled the request');
}

/**
 * The whole body of an HTTP/1.1 request with a message of at most `maxBytes`, which may come in an
 * envelope; rejects with BODY_TOO_LARGE, BODY_MEMORY_EXHAUSTED, BODY_IN_CRUMBS, or the reason of `signal`.
 */
export function wholeBodyOfExchange(
  exchange: HttpExchange,
  maxBytes: number,
  signal: AbortSignal,
): WholeBody {
  return new WholeBody(
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      exchange.readBody(maxBytes + ENVELOPE_BYTES, resolve, (refusal) =>
        reject(refusal ?? bodyTooLarge(maxBytes)),
      );
    }),
  );
}

/** The body of an HTTP/1.1 request by whole units; a slow reader holds the client back. */
export function streamedBodyOfExchange(
  exchange: HttpExchange,
  ends: UnitEnds,
  signal: AbortSignal,
): StreamedBody {
  const body = new StreamedBody({
    ends,
    budget: exchange.bodyBudget,
    owner: () => exchange.bodyOwner,
    signal,
    pause: () => exchange.pauseBody(),
    resume: () => exchange.resumeBody(),
  });
  exchange.streamBody(
    (chunk, isLast) => {
      body.came(chunk);
      if (isLast) body.ended();
    },
    () => body.release(),
  );
  return body;
}

/** The body of an HTTP/2 request by whole messages, under the protocol's own flow control. */
export function streamedBodyOfStream(
  stream: Http2RequestStream,
  ends: UnitEnds,
  budget: BodyBudget,
  signal: AbortSignal,
): StreamedBody {
  const body = new StreamedBody({
    ends,
    budget,
    owner: () => stream.bodyOwner,
    signal,
    pause: () => stream.pause(),
    resume: () => stream.resume(),
  });
  stream.on('data', (chunk) => body.came(chunk));
  stream.once('end', () => body.ended());
  return body;
}

function ignoreUnread(): void {
  // The failure is seen by whoever reads the body; without a reader nothing depends on it.
}
