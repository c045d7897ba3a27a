import type { HotCounter } from '../../observability/metric-store.ts';
import type { AttemptOutcome } from '../model/delivery.ts';
import type { OutboundChannel } from '../model/notification.ts';

/** What the dispatcher counts. */
export interface DispatchMetrics {
  /** An attempt to deliver has ended after so many seconds. */
  readonly send: (channel: OutboundChannel, outcome: AttemptOutcome, seconds: number) => void;
  /** Attempts after the first one. */
  readonly retries: Readonly<Record<AttemptOutcome, HotCounter>>;
  /** Endpoints that were disabled since they had failed for long. */
  readonly endpointsDisabled: HotCounter;
}
