import type { AnswerSink } from '../exchange/answer-sink.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { CallRequest } from './call.ts';

/** What a call comes by, and its answer goes: an exchange of HTTP/1.1 or a stream of HTTP/2. */
export interface CallCarrier {
  /** HTTP/1.1 carries no trailers, and no answers before the end of a body. */
  readonly isHttp1: boolean;
  readonly path: string;
  readonly method: string;
  /** The client does not wait any more. */
  readonly isGone: boolean;
  /** A header by its lower-case name, '' when absent. */
  header(lowerCaseName: string): string;
  /** Keeps what could not be had any more once the caller is known. */
  hold(isReadWhole: boolean): void;
  /** Counts the body against the share of a caller. */
  own(caller: string): void;
  /** The request, after `own`; its body whole, or message by message. */
  open(isReadWhole: boolean): Pick<CallRequest, 'header' | 'body' | 'signal'>;
  /** Aborted, with its reason, when the client has gone; once. */
  signal(): AbortSignal;
  /** Takes the answer to `caller`. */
  sink(requestId: string, caller: object): AnswerSink;
  /** Answers a call that no handler sees. */
  refuse(response: HttpAnswer, requestId: string): void;
}

/** A body whose failure is seen by whoever awaits it, and by nobody where nobody does: a refused call never reads its own. */
export function orUnread(body: Promise<Uint8Array>): Promise<Uint8Array> {
  body.catch(() => undefined);
  return body;
}
