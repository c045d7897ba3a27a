import type { HotCounter } from '../../observability/metric-store.ts';
import type { OutboundChannel } from '../model/notification.ts';

/** What came of one attempt: `failed` is tried again, `dead` is not. */
export const ATTEMPT_OUTCOMES = ['sent', 'failed', 'dead'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** What the dispatcher counts. */
export interface DispatchMetrics {
  /** An attempt to deliver has ended after so many seconds. */
  readonly send: (channel: OutboundChannel, outcome: AttemptOutcome, seconds: number) => void;
  /** Attempts after the first one. */
  readonly retries: Readonly<Record<AttemptOutcome, HotCounter>>;
}
