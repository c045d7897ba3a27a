/**
 * Presses on a service from a process of its own, so that what is measured beside it waits for the service and not
 * for this. Started by harness/pressure.ts, which it talks to over the channel of fork.
 */
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PressureCommand, PressureReport } from './harness/pressure.ts';
import { RawPool, requestBytes } from './harness/raw-http.ts';
import { refusalOf } from './harness/refusal.ts';

/** Arrivals that may wait for a connection; what comes beyond them counts as never sent. */
const WAITING_MAX = 20_000;

let isStopped = false;

process.on('message', (command: PressureCommand) => {
  if (command.kind === 'stop') isStopped = true;
  else void press(command).then((report) => process.send?.(report));
});
process.on('disconnect', () => process.exit(0));

type Press = Extract<PressureCommand, { kind: 'press' }>;

async function press(command: Press): Promise<PressureReport> {
  isStopped = false;
  const { port, token, path, bodies, perSecond, seconds, connections, timeoutMs } = command;
  const headers = {
    ...command.headers,
    ...(timeoutMs === undefined ? {} : { 'connect-timeout-ms': String(timeoutMs) }),
  };
  const requests = bodies.map((body) => requestBytes(path, Buffer.from(body), token, headers));
  const pool = new RawPool(port, connections);
  const histogram = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
  const refused: Record<string, number> = {};
  let [issued, open, good, late, notSent] = [0, 0, 0, 0, 0];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const issue = (dueMs: number): void => {
    open += 1;
    const request = requests[issued % requests.length] as Buffer;
    issued += 1;
    let sentMs = dueMs;
    const onSent = (): void => {
      sentMs = performance.now();
    };
    pool.post(request, onSent, (reply) => {
      open -= 1;
      const nowMs = performance.now();
      if (reply?.status === 200) {
        // Goodput is what was answered while the load lasted, and to a caller who still waited since it asked.
        if (nowMs <= endMs && nowMs - sentMs <= (timeoutMs ?? Infinity)) good += 1;
        else late += 1;
        histogram.record(Math.max(1, Math.round((nowMs - sentMs) * 1e6)));
      } else {
        const why = reply === undefined ? 'connection lost' : refusalOf(reply.body.toString());
        refused[why] = (refused[why] ?? 0) + 1;
      }
      if (perSecond === undefined && !isStopped && nowMs < endMs) issue(nowMs);
    });
  };
  if (perSecond === undefined) {
    for (let i = 0; i < connections; i++) issue(performance.now());
    while (!isStopped && performance.now() < endMs) await sleep(10);
  } else {
    let due = 0;
    while (!isStopped && performance.now() < endMs) {
      const until = Math.floor(((performance.now() - startMs) * perSecond) / 1000);
      for (; due < until; due++) {
        if (open - connections >= WAITING_MAX) notSent += 1;
        else issue(startMs + (due * 1000) / perSecond);
      }
      await sleep(1);
    }
  }
  const lastedS = (performance.now() - startMs) / 1000;
  const openAtEnd = open;
  const graceUntilMs = performance.now() + 10_000;
  while (open > 0 && performance.now() < graceUntilMs) await sleep(10);
  pool.close();
  return {
    kind: 'report',
    offeredPerSecond: (issued + notSent) / lastedS,
    goodPerSecond: good / lastedS,
    late,
    refused,
    notSent,
    openAtEnd,
    neverAnswered: open,
    p50Ms: histogram.percentile(50) / 1e6,
    p99Ms: histogram.percentile(99) / 1e6,
    maxMs: histogram.max / 1e6,
  };
}
