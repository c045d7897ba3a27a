import type { HotCounter } from '../../observability/metric-store.ts';

/** What happens on streams: frames of each kind, and streams that open and close. */
export const STREAM_KINDS = [
  'open',
  'notification',
  'replay',
  'read',
  'heartbeat',
  'gap',
  'reset',
  'close',
] as const;
export const DROP_REASONS = ['buffer_full', 'too_old'] as const;
/** Why a stream was ended for its token or by a call. */
export const END_REASONS = ['revoked', 'disconnected', 'expired'] as const;
export type EndReason = (typeof END_REASONS)[number];

/** What live streams count. */
export interface LiveMetrics {
  readonly streamEvents: Readonly<Record<(typeof STREAM_KINDS)[number], HotCounter>>;
  readonly ended: Readonly<Record<EndReason, HotCounter>>;
  /** Events that a stream did not get. */
  readonly dropped: Readonly<Record<(typeof DROP_REASONS)[number], HotCounter>>;
  /** Those lost since the buffer was full, as outcomes of the live channel. */
  readonly liveDropped: HotCounter;
}
