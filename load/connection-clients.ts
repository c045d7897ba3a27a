/**
 * Opens connections at a service and asks on them, from a process of its own. Started by harness/connections.ts,
 * which it talks to over the channel of fork.
 */
import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import type { ConnectionCommand, ConnectionReport, Latencies } from './harness/connections.ts';
import { requestBytes } from './harness/raw-http.ts';

const HEAD_END = '\r\n\r\n';
/** What wrk calls a time-out. */
const TIMEOUT_MS = 2_000;

process.on('message', (command: ConnectionCommand) => {
  void press(command).then((report) => process.send?.(report));
});
process.on('disconnect', () => process.exit(0));

/** Keeps `connections` open, each with one request at a time, replaced after `requestsEach` answers. */
async function press(command: ConnectionCommand): Promise<ConnectionReport> {
  const { port, token, path, bodies, connections, requestsEach, seconds } = command;
  const requests = bodies.map((body) => requestBytes(path, Buffer.from(body), token));
  const first = histogram();
  const later = histogram();
  const endMs = performance.now() + seconds * 1000;
  let [next, answered, opened, failed, timedOut] = [0, 0, 0, 0, 0];

  const open = (done: () => void): void => {
    opened += 1;
    let sentMs = performance.now();
    let count = 0;
    let text = '';
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('latin1');
    const ask = (): void => void socket.write(requests[next++ % requests.length] as Buffer);
    socket.once('connect', ask);
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!isWhole(text)) return;
      const nowMs = performance.now();
      const tookMs = nowMs - sentMs;
      if (!text.startsWith('HTTP/1.1 200')) failed += 1;
      if (tookMs > TIMEOUT_MS) timedOut += 1;
      // Of a new connection the time counts from before it is opened.
      (count === 0 ? first : later).record(Math.max(1, Math.round(tookMs * 1e6)));
      text = '';
      count += 1;
      answered += 1;
      if (nowMs >= endMs || count >= requestsEach) socket.destroy();
      else {
        sentMs = nowMs;
        ask();
      }
    });
    socket.once('error', () => (failed += 1));
    socket.once('close', () => {
      if (performance.now() >= endMs) done();
      else open(done);
    });
  };
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: connections }, () => new Promise<void>((resolve) => open(resolve))),
  );
  const lastedS = (performance.now() - startMs) / 1000;
  return {
    perSecond: Math.round(answered / lastedS),
    opened,
    failed,
    timedOut,
    first: latenciesOf(first),
    later: latenciesOf(later),
  };
}

function histogram(): ReturnType<typeof createHistogram> {
  return createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
}

function latenciesOf(recorded: ReturnType<typeof createHistogram>): Latencies {
  const ms = (ns: number): number => Math.round(ns / 1e4) / 100;
  return {
    count: recorded.count,
    p50Ms: ms(recorded.percentile(50)),
    p99Ms: ms(recorded.percentile(99)),
    maxMs: ms(recorded.count === 0 ? 0 : recorded.max),
  };
}

function isWhole(text: string): boolean {
  const head = text.indexOf(HEAD_END);
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  return length === undefined || text.length >= head + HEAD_END.length + Number(length);
}
