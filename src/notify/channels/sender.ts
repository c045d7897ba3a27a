import type { DueDelivery } from '../model/notification.ts';

/** What came of one attempt. `isFinal`: no further attempt can help. */
export type SendResult =
  | { readonly isSent: true }
  | {
      readonly isSent: false;
      /** Short, without content of the notification or secrets; at most 200 characters. */
      readonly error: string;
      readonly isFinal: boolean;
      /** What the other side asked for. */
      readonly retryAfterMs?: number | undefined;
    };

/** Carries deliveries of one channel. Never rejects. */
export interface Sender {
  send(delivery: DueDelivery, signal: AbortSignal): Promise<SendResult>;
  close(): void;
}

const ERROR_LENGTH_MAX = 200;

export function failed(error: string, isFinal = false, retryAfterMs?: number): SendResult {
  return { isSent: false, error: error.slice(0, ERROR_LENGTH_MAX), isFinal, retryAfterMs };
}
