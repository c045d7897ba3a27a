import type { MetricStore } from './metric-store.ts';

/** Shows in the metrics of a service, whose names begin with `prefix`, the open connections of HTTP/1.1 by who reads them. */
export function showHttp1Connections(
  store: MetricStore,
  prefix: string,
  counts: () => Readonly<Record<string, number>>,
): void {
  const open = store.gauge({
    name: `${prefix}_http1_connections`,
    help: 'Open connections of HTTP/1.1, by who reads them: uws (uWebSockets.js) or node (node:http).',
    labelNames: ['parser'],
  });
  store.onCollect(() => {
    for (const [parser, count] of Object.entries(counts())) open.set({ parser }, count);
  });
}
