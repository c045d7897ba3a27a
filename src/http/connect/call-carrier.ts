import type { AnswerSink } from '../exchange/answer-sink.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { CallRequest } from './call.ts';

/** Transport of one call and its answer: an exchange of HTTP/1.1 or a stream of HTTP/2. */
export interface CallCarrier {
  /** HTTP/1.1 carries no trailers, and no answers before the end of a body. */
  readonly isHttp1: boolean;
  readonly path: string;
  readonly method: string;
  /** Whether the client no longer waits. */
  readonly isGone: boolean;
  /** A header by its lower-case name, '' when absent. */
  header(lowerCaseName: string): string;
  /** Keeps the parts of the request that are gone by the time that the caller is known. */
  hold(isReadWhole: boolean): void;
  /** Counts the body against the share of a caller. */
  own(caller: string): void;
  /** Opens the request, after `own`. Its body comes whole, or message by message. */
  open(isReadWhole: boolean): Pick<CallRequest, 'header' | 'body' | 'signal'>;
  /** Aborted, with its reason, when the client has gone; once. */
  signal(): AbortSignal;
  /** Makes the sink of the answer to `caller`. */
  sink(requestId: string, caller: object): AnswerSink;
  /** Answers a call that no handler sees. */
  refuse(response: HttpAnswer, requestId: string): void;
}

/**
 * Marks the failure of a body as handled, since a refused call never reads its body. A reader that awaits the body still sees
 * the failure.
 */
export function orUnread(body: Promise<Uint8Array>): Promise<Uint8Array> {
  body.catch(() => undefined);
  return body;
}
