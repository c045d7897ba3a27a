import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { UnreadAnswers } from '../../exchange/unread-answers.ts';
import { ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR } from '../../http2/frames/protocol.ts';
import type { Http2RequestStream } from '../../http2/request-stream.ts';
import { REQUEST_ID_HEADER } from '../../request-id.ts';
import type { UniversalResponse } from '../protocol/universal.ts';
import { BytesBody } from './adapter-body.ts';
import { StreamAnswer } from './stream-answer.ts';

/** The headers of an HTTP/2 request without the pseudo ones. Errors: TypeError for a bad value. */
export function headersFromHttp2(incoming: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const name in incoming) {
    if (name.startsWith(':')) continue;
    const value = incoming[name];
    if (Array.isArray(value)) for (const one of value) headers.append(name, one);
    else if (value !== undefined) headers.append(name, value);
  }
  return headers;
}

/**
 * Writes a universal response, trailers included, to an HTTP/2 stream under its flow control. What waits for its reader is held in
 * `unread`, of `owner`. Never throws: a stream that the client has reset is left alone.
 */
export async function respondToStream(
  stream: Http2RequestStream,
  response: UniversalResponse,
  requestId: string,
  unread?: UnreadAnswers,
  owner?: object,
): Promise<void> {
  const answer = new StreamAnswer(stream, unread, owner);
  const iterator = response.body?.[Symbol.asyncIterator]();
  try {
    if (response.body === undefined || iterator === undefined) {
      if (!stream.destroyed) stream.respond(headOf(response, requestId), { endStream: true });
      return;
    }
    if (response.body instanceof BytesBody && response.trailer === undefined) {
      if (stream.destroyed) return;
      stream.respond(headOf(response, requestId));
      answer.end(response.body.bytes);
      return;
    }
    let step = await iterator.next();
    if (stream.destroyed) return;
    stream.respond(headOf(response, requestId), {
      waitForTrailers: response.trailer !== undefined,
    });
    // Read when they are sent: the handlers fill the trailers in at the end of the body.
    stream.once('wantTrailers', () => {
      stream.sendTrailers(response.trailer === undefined ? {} : outgoing(response.trailer));
    });
    for (; step.done !== true; step = await iterator.next()) {
      if (stream.destroyed) return;
      await answer.write(step.value);
    }
    if (!stream.destroyed) answer.end(NO_BYTES);
  } catch {
    // The protocol handlers turn failures into trailers; what still throws is a reset stream.
    if (!stream.destroyed) stream.close(INTERNAL_ERROR);
  } finally {
    iterator?.return?.().catch(ignoreEnded);
    release(stream);
  }
}

const NO_BYTES = new Uint8Array(0);
/** How long a client may go on sending to a call that is answered. */
const LATE_BODY_MS = 1_000;
/** How long a refusal waits for its reader. */
const REFUSAL_MS = 1_000;

/**
 * As `respondToStream`, for a call that no handler sees. It waits only a moment for who does not read: nobody is known to have
 * a right to our memory.
 */
export async function refuseStream(
  stream: Http2RequestStream,
  response: UniversalResponse,
  requestId: string,
  unread?: UnreadAnswers,
): Promise<void> {
  await respondToStream(stream, response, requestId, unread);
  if (stream.writableFinished || stream.destroyed) return;
  const timer = setTimeout(() => {
    if (!stream.writableFinished && !stream.destroyed) stream.close(ENHANCE_YOUR_CALM);
  }, REFUSAL_MS);
  timer.unref();
  stream.once('close', () => clearTimeout(timer));
}

/**
 * What the client still sends is thrown away, so that it does not wait for our window; if it does not
 * stop, the stream is reset without an error, as RFC 9113 §8.1 has it for a complete answer.
 */
export function release(stream: Http2RequestStream): void {
  if (stream.destroyed || stream.readableEnded) return;
  stream.resume();
  const wait = (): void => {
    if (stream.destroyed || stream.readableEnded) return;
    const timer = setTimeout(() => stream.close(NO_ERROR), LATE_BODY_MS);
    stream.once('close', () => clearTimeout(timer));
  };
  if (stream.writableFinished) wait();
  else stream.once('finish', wait);
}

function headOf(response: UniversalResponse, requestId: string): OutgoingHttpHeaders {
  const head = response.header === undefined ? {} : outgoing(response.header);
  head[':status'] = response.status;
  head[REQUEST_ID_HEADER] = requestId;
  if (response.status === 405) head['allow'] = 'POST';
  return head;
}

function outgoing(headers: Headers): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = {};
  headers.forEach((value, name) => {
    out[name] = value;
  });
  return out;
}

function ignoreEnded(): void {
  // The iteration is over either way.
}
