import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { LatencyHistogram } from '../../load/drive/latency-histogram.ts';
import type { RunResult } from '../../load/drive/run-result.ts';
import { ServerMetrics } from '../../load/drive/server-metrics.ts';
import { figureLines, runTable, serviceLine, tableLines } from '../../load/report/figures.ts';

const latencies = { p50: 1, p90: 2, p99: 3, p999: 4, max: 5 };
const run: RunResult = {
  format: 'gatehouse-load/1',
  title: 't',
  startedAt: '',
  target: '',
  generators: 1,
  seconds: [
    { second: 0, offered: 10, notSent: 0, answered: 8, wrong: 0, refused: { a: 2 }, latencies },
  ],
  stages: [],
  operations: [
    {
      stage: 'all day',
      operation: 'check',
      answered: 8,
      wrong: 0,
      refused: 2,
      perSecond: 8,
      latencies,
    },
  ],
  latencies: new LatencyHistogram().pack(),
  server: [
    { second: 1, cpuCores: 1.5, residentMib: 300 },
    { second: 2, cpuCores: 2.5, residentMib: 400 },
  ],
  generatorCpuCores: 0,
  sentLateP99Ms: 0,
  failures: [],
  isWhole: true,
};

test('a run ends with a table of what was asked, and says whose CPU and memory it shows', () => {
  const [head, check, all] = tableLines(runTable(run));
  expect(head).toMatch(/answered +a second +refused +wrong +p50 ms +p90 ms +p99 ms/);
  expect(check).toMatch(/^all day check +8 +8 +2 +0 +1 +2 +3 +4 +5$/);
  expect(all).toMatch(/^all +8 +8 +2 +0/);
  expect(serviceLine(run)).toBe(
    'service: 2 cores on average, 400 MiB resident at most (one process, whose --metrics-url was given: others of the target are not in it)',
  );
  expect(serviceLine({ ...run, metricsOf: 3 })).toContain('(3 processes, summed)');
  expect(serviceLine({ ...run, server: [] })).toBeUndefined();
});

test('the figures of a scenario are a line each', () => {
  const lines = figureLines({ alone: [{ rate: 300, p99Ms: 1.5 }], isFair: true });
  expect(lines).toEqual(['alone 0 rate    300', 'alone 0 p99Ms  1.50', 'isFair         true']);
});

const servers = [0.25, 0.5].map((cpu, at) =>
  createServer((_request, response) => {
    const delay = at === 0 ? 0.01 : 0.02;
    response.end(
      `process_cpu_seconds_total ${cpu}\nprocess_resident_memory_bytes ${100 * 1024 * 1024}\nnodejs_eventloop_delay_p99_seconds ${delay}\n`,
    );
  }),
);
afterAll(() => {
  for (const server of servers) server.close();
});

test('several processes are summed; of delays the longest counts', async () => {
  const urls = await Promise.all(
    servers.map(
      (server) =>
        new Promise<string>((resolve) => {
          server.listen(0, '127.0.0.1', () =>
            resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
          );
        }),
    ),
  );
  const metrics = new ServerMetrics(urls, undefined);
  await metrics.scrape();
  metrics.start();
  await expect.poll(() => metrics.samples.length, { timeout: 20_000 }).toBeGreaterThan(0);
  metrics.stop();
  expect(metrics.samples[0]).toMatchObject({ residentMib: 200, loopDelayP99Ms: 20 });
});
