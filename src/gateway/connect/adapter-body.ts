import type { BodyDeadlines } from '../../http/body-deadlines.ts';
import { bodyTooLarge } from '../../http/gunzip-limited.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { Http2RequestStream } from '../../http/http2/request-stream.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/** Chunks held for a reader that is slower than its client, before the client is held back. */
const CHUNKS_AHEAD_MAX = 4;

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

/** Envelope of gRPC-Web and of server streams around the one message of a body read whole. */
const ENVELOPE_BYTES = 5;

/**
 * The whole body of an HTTP/1.1 request with a message of at most `maxBytes`, which may come in an
 * envelope; rejects with BODY_TOO_LARGE, or the reason of `signal`.
 */
export function wholeBodyOfExchange(
  exchange: HttpExchange,
  maxBytes: number,
  signal: AbortSignal,
): WholeBody {
  return new WholeBody(
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      exchange.readBody(maxBytes + ENVELOPE_BYTES, resolve, () => reject(bodyTooLarge(maxBytes)));
    }),
  );
}

/** The body of an HTTP/1.1 request chunk by chunk; a slow reader holds the client back. */
export function streamedBodyOfExchange(
  exchange: HttpExchange,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const queue: Uint8Array[] = [];
  let isComplete = false;
  let isPaused = false;
  let wake: (() => void) | null = null;
  exchange.streamBody((chunk, isLast) => {
    if (chunk.byteLength > 0) queue.push(chunk);
    isComplete ||= isLast;
    if (!isPaused && !isLast && queue.length >= CHUNKS_AHEAD_MAX) {
      isPaused = true;
      exchange.pauseBody();
    }
    wake?.();
  });
  signal.addEventListener('abort', () => wake?.(), { once: true });
  return (async function* read() {
    for (;;) {
      const chunk = queue.shift();
      if (chunk !== undefined) yield chunk;
      else if (isComplete) return;
      else if (signal.aborted) throw signal.reason;
      else {
        if (isPaused) {
          isPaused = false;
          exchange.resumeBody();
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = null;
      }
    }
  })();
}

/** As `wholeBodyOfExchange`, of an HTTP/2 request; one that takes too long resets the stream. */
export function wholeBodyOfStream(
  stream: Http2RequestStream,
  maxBytes: number,
  deadlines: BodyDeadlines,
  signal: AbortSignal,
): WholeBody {
  const slow = { cut: () => stream.close(CANCEL) };
  return new WholeBody(
    new Promise((resolve, reject) => {
      const parts: Uint8Array[] = [];
      let size = 0;
      deadlines.add(slow);
      stream.once('close', () => deadlines.remove(slow));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      stream.on('data', (chunk: Uint8Array) => {
        size += chunk.byteLength;
        if (size <= maxBytes + ENVELOPE_BYTES) parts.push(chunk);
        else {
          parts.length = 0; // the rest is read and thrown away, so that the answer gets through
          reject(bodyTooLarge(maxBytes));
        }
      });
      stream.once('end', () => {
        deadlines.remove(slow);
        const [first] = parts;
        resolve(parts.length === 1 && first !== undefined ? first : Buffer.concat(parts));
      });
    }),
  );
}

/** The body of an HTTP/2 request chunk by chunk, under the protocol's own flow control. */
export async function* streamedBodyOfStream(
  stream: Http2RequestStream,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    // Ending the iteration early must not destroy the stream: its answer is still to be sent.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      yield chunk as Uint8Array;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    stream.resume();
  }
}

/** NGHTTP2_CANCEL */
const CANCEL = 8;

function ignoreUnread(): void {
  // The failure is seen by whoever reads the body; without a reader nothing depends on it.
}
