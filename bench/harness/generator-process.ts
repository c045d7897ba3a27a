// The child process of generator.ts: sends what a message says, and answers with what it counted.
import type { Counted, Load } from './generator.ts';
import { Http1Callers } from './http1-callers.ts';
import { Http2Connection } from './http2-connection.ts';
import { quantile } from './options.ts';

/** Milliseconds that the last answers may take once a turn is over. */
const PATIENCE_MS = 10_000;
/** Between two looks at the clock: of a closed loop, and of one whose requests are due. */
const [CLOSED_MS, PACED_MS] = [20, 1];

process.on('message', (load: Load) => {
  void run(load).then((counted) => process.send?.(counted));
});

/** Runs one load. Latencies count from when a request was due, in a closed loop from when it was sent. */
async function run(load: Load): Promise<Counted> {
  const { port, path, headers, seconds, perSecond, operations } = load;
  const bodies = load.bodies.map((body) => Buffer.from(body, 'base64'));
  const latencies: number[] = [];
  let counted = 0;
  let problem: string | undefined;
  const onProblem = (text: string): void => void (problem ??= text);
  const onAnswer = (askedMs: number): void => {
    const nowMs = performance.now();
    latencies.push(nowMs - askedMs);
    if (nowMs < endMs) counted = latencies.length;
    if (perSecond === 0 && nowMs < endMs) target.ask(nowMs);
  };
  const questions = { path, headers, bodies, hasTrailers: load.protocol === 'grpc' };
  const target =
    load.protocol === 'grpc'
      ? new Http2Connection(port, questions, onAnswer, onProblem)
      : new Http1Callers(port, load.callers, questions, onAnswer, onProblem);
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  if (perSecond === 0) for (let i = 0; i < load.callers; i++) target.ask(startMs);
  const cpuBefore = process.cpuUsage();
  let asked = 0;
  while (performance.now() < endMs && problem === undefined) {
    const due = ((performance.now() - startMs) / 1000) * perSecond;
    for (; asked < due; asked++) target.ask(startMs + (asked / perSecond) * 1000);
    await pause(perSecond === 0 ? CLOSED_MS : PACED_MS);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const patientUntilMs = performance.now() + PATIENCE_MS;
  while (target.openCount > 0 && problem === undefined && performance.now() < patientUntilMs) {
    await pause(5);
  }
  if (target.openCount > 0) onProblem('some requests were not answered');
  target.close();
  // Bodies go out in turn, so that each was answered as often as the others.
  const each = operations.reduce((sum, one) => sum + one, 0) / operations.length;
  return {
    operations: counted * each,
    seconds,
    operationsInAll: latencies.length * each,
    generatorCores: (user + system) / 1e6 / seconds,
    p50Ms: quantile(latencies),
    p99Ms: quantile(latencies, 0.99),
    problem,
  };
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
