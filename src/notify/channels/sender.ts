import { ANSWER_BYTES_MAX } from '../model/delivery.ts';
import type { DueDelivery } from '../model/notification.ts';

/** What the other side said. */
export type EndpointAnswer = {
  /** Of HTTP or SMTP; 0 without an answer. */
  readonly answerStatus: number;
  /** Its start, as `shortAnswer` makes it. */
  readonly answer: string;
};

/** What came of one attempt. `isFinal`: no further attempt can help. */
export type SendResult = EndpointAnswer &
  (
    | { readonly isSent: true }
    | {
        readonly isSent: false;
        /** Short, without content of the notification or secrets; at most 200 characters. */
        readonly error: string;
        readonly isFinal: boolean;
        /** What the other side asked for. */
        readonly retryAfterMs?: number | undefined;
      }
  );

/** Carries deliveries of one channel. Never rejects. */
export interface Sender {
  send(delivery: DueDelivery, signal: AbortSignal): Promise<SendResult>;
  close(): void;
}

export const NO_ANSWER: EndpointAnswer = { answerStatus: 0, answer: '' };

const ERROR_LENGTH_MAX = 200;
const CONTROLS = /\p{Cc}+/gu;

export function failed(
  error: string,
  isFinal = false,
  retryAfterMs?: number,
  answer: EndpointAnswer = NO_ANSWER,
): SendResult {
  const text = error.replaceAll(CONTROLS, ' ').slice(0, ERROR_LENGTH_MAX).toWellFormed();
  return { ...answer, isSent: false, error: text, isFinal, retryAfterMs };
}

/** The start of an answer as it may be kept and shown: one line of well-formed text of at most 256 bytes. */
export function shortAnswer(answer: Buffer | string): string {
  const bytes = typeof answer === 'string' ? Buffer.from(answer) : answer;
  const line = bytes
    .subarray(0, ANSWER_BYTES_MAX)
    .toString('utf8')
    .replaceAll(CONTROLS, ' ')
    .trim();
  // What stands for broken characters is longer than these were.
  let end = line.length;
  while (Buffer.byteLength(line.slice(0, end)) > ANSWER_BYTES_MAX) end -= 1;
  return line.slice(0, end).toWellFormed();
}
