// A load generator of HTTP/2, as a child process of http2-rate.ts; yields nothing by itself.
import { Http2Connection } from './http2-connection.ts';
import type { Http2Counted, Http2Job } from './http2-rate.ts';

process.on('message', (job: Http2Job) => {
  void run(job).then((counted) => process.send?.(counted));
});

/** Runs one job: a closed loop, or with `perSecond` an open one, whose latencies count from when a request was due. */
async function run(job: Http2Job): Promise<Http2Counted> {
  const { port, streams, connections, seconds, perSecond } = job;
  const bodies = job.bodies.map((body) => Buffer.from(body, 'base64'));
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const latencies: number[] = [];
  const problems: string[] = [];
  const onProblem = (problem: string): void => void problems.push(problem);
  const all: Http2Connection[] = [];
  for (let i = 0; i < connections; i++) {
    const connection: Http2Connection = new Http2Connection(
      port,
      { ...job, bodies },
      (askedMs) => {
        const nowMs = performance.now();
        latencies.push(nowMs - askedMs);
        if (perSecond === 0 && nowMs < endMs) connection.ask(nowMs);
      },
      onProblem,
    );
    all.push(connection);
    if (perSecond === 0) for (let j = 0; j < streams; j++) connection.ask(performance.now());
  }
  let asked = 0;
  while (performance.now() < endMs && problems.length === 0) {
    const due = perSecond === 0 ? 0 : ((performance.now() - startMs) / 1000) * perSecond;
    for (; asked < due; asked++) {
      (all[asked % connections] as Http2Connection).ask(startMs + (asked / perSecond) * 1000);
    }
    await new Promise((resolve) => setTimeout(resolve, perSecond === 0 ? 20 : 1));
  }
  const lastedS = (performance.now() - startMs) / 1000;
  const count = latencies.length;
  const patienceMs = performance.now() + 2_000;
  const isOpen = (): boolean => all.some((connection) => connection.openCount > 0);
  while (isOpen() && problems.length === 0 && performance.now() < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (isOpen()) onProblem('some requests were not answered');
  for (const connection of all) connection.close();
  latencies.sort((a, b) => a - b);
  const quantile = (q: number): number => latencies[Math.floor(latencies.length * q)] ?? Number.NaN;
  return { count, lastedS, p50Ms: quantile(0.5), p99Ms: quantile(0.99), problem: problems[0] };
}
