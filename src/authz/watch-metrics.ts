import type { Counter } from 'prom-client';
import type { MetricStore } from '../observability/metric-store.ts';
import type { WatchMetrics } from '../services/watch/tuple-watch.ts';

const LAG_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30];

/** Series of those who follow changes, all there from the start. */
export function createWatchMetrics(store: MetricStore): WatchMetrics {
  const streams = store.gauge({
    name: 'gatehouse_watch_streams',
    help: 'Streams that follow changes of tuples.',
  });
  streams.set(0);
  const sent = store.counter<'kind'>({
    name: 'gatehouse_watch_messages_total',
    help: 'Messages to those who follow changes, by kind.',
    labelNames: ['kind'],
  });
  for (const kind of ['changes', 'heartbeat', 'modelChanged', 'resync']) sent.inc({ kind }, 0);
  const lag = store
    .histograms(
      {
        name: 'gatehouse_watch_lag_seconds',
        help: 'From the begin of a write in the database to its being told to a follower.',
      },
      LAG_BOUNDS_SECONDS,
    )
    .cell({});
  return {
    streams: (change) => streams.inc(change),
    sent: (kind) => sent.inc({ kind }),
    lag: (seconds) => lag.observe(seconds),
  };
}

/** Streams over HTTP that ended since their readers took nothing for too long, by method. */
export function createStalledStreams(store: MetricStore): Counter<'method'> {
  const stalled = store.counter<'method'>({
    name: 'gatehouse_stalled_streams_total',
    help: 'Streams that ended since their readers took nothing for too long, by method.',
    labelNames: ['method'],
  });
  for (const method of ['StreamTuples', 'Watch']) stalled.inc({ method }, 0);
  return stalled;
}
