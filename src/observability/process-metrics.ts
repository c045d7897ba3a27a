import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Gauge } from 'prom-client';
import type { MetricStore } from './metric-store.ts';

const NANOSECONDS = 1e9;

/**
 * Figures of the process, under the names that exporters share where there are such names. prom-client's
 * default set is not used: it holds gauges named `_total`, which `promtool check metrics` refuses.
 */
export function registerProcessMetrics(store: MetricStore): void {
  const cpu = store.counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process, all threads, user and system.',
  });
  const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
  const resident = gauge('process_resident_memory_bytes', 'Resident memory of the process.');
  const heap = gauge('nodejs_heap_used_bytes', 'Used JavaScript heap of the main thread.');
  const external = gauge(
    'nodejs_external_memory_bytes',
    'Memory of the main thread outside its JavaScript heap.',
  );
  gauge('process_start_time_seconds', 'Start of the process, since the Unix epoch.').set(
    Math.round(performance.timeOrigin) / 1000,
  );
  const help = 'Delay of the event loop of the main thread since the scrape before';
  const delayP50 = gauge('nodejs_eventloop_delay_p50_seconds', `${help}, median.`);
  const delayP99 = gauge('nodejs_eventloop_delay_p99_seconds', `${help}, 99th percentile.`);
  const delayMax = gauge('nodejs_eventloop_delay_max_seconds', `${help}, largest.`);
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();

  let cpuSeen = 0;
  store.onCollect(() => {
    const { user, system } = process.cpuUsage();
    const total = (user + system) / 1e6;
    cpu.inc(total - cpuSeen);
    cpuSeen = total;
    const memory = process.memoryUsage();
    resident.set(memory.rss);
    heap.set(memory.heapUsed);
    external.set(memory.external);
    if (delay.count > 0) {
      delayP50.set(delay.percentile(50) / NANOSECONDS);
      delayP99.set(delay.percentile(99) / NANOSECONDS);
      delayMax.set(delay.max / NANOSECONDS);
    }
    delay.reset();
  });
}

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
