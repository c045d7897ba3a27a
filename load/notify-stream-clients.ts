/**
 * Holds many live streams open in a process of its own, so that receiving disturbs neither the service
 * nor the generator. Started by scenarios/notify-live.ts, which it talks to over the channel of fork.
 */
import { connect } from 'node:net';
import { percentilesOf } from './drive/counts.ts';
import { LatencyHistogram } from './drive/latency-histogram.ts';
import type { Percentiles } from './drive/run-result.ts';

/** What the scenario tells this process; an answer follows each. */
export type StreamCommand =
  | { readonly kind: 'open'; readonly port: number; readonly paths: readonly string[] }
  | { readonly kind: 'report' };

/** What this process has received. */
export type StreamReport = {
  readonly open: number;
  /** Notifications with a due time, which are the measured ones. */
  readonly received: number;
  /** Notifications whose sequence did not follow the one before on the same stream. */
  readonly outOfOrder: number;
  readonly gapEvents: number;
  /** Milliseconds from when it was due. */
  readonly latencies: Percentiles;
};

/** Connections that are being opened at once. */
const OPENING_MAX = 50;

const histogram = new LatencyHistogram();
let [open, outOfOrder, gapEvents] = [0, 0, 0];

/** Opens one stream; resolves with its first event. */
function openStream(port: number, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let rest = '';
  let last = -1;
  const onEvent = (event: string, nowNs: bigint): void => {
    if (event.includes('event: gap')) gapEvents++;
    const id = /^id: (\d+)$/m.exec(event)?.[1];
    if (id === undefined) return;
    if (last === -1) {
      open++;
      resolve();
    } else if (Number(id) !== last + 1) outOfOrder++;
    last = Number(id);
    const dueUs = /"due_us":(\d+)/.exec(event)?.[1];
    if (dueUs !== undefined) histogram.record(Number(nowNs / 1_000n - BigInt(dueUs)) / 1_000);
  };
  socket.setEncoding('latin1');
  socket.on('data', (text) => {
    const nowNs = process.hrtime.bigint();
    const events = (rest + text.toString()).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) onEvent(event, nowNs);
  });
  socket.on('error', reject);
  socket.on('close', () => {
    open--;
    reject(new Error('a stream was closed'));
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n`);
  return promise;
}

process.on('message', (command: StreamCommand) => {
  const report = (): void => {
    const latencies = percentilesOf(histogram);
    const received = histogram.count;
    process.send?.({ open, received, outOfOrder, gapEvents, latencies } satisfies StreamReport);
  };
  if (command.kind === 'report') return report();
  const paths = command.paths.values();
  const opener = async (): Promise<void> => {
    for (const path of paths) await openStream(command.port, path);
  };
  void Promise.all(Array.from({ length: OPENING_MAX }, opener)).then(report);
});
// The scenario has ended, however it did.
process.on('disconnect', () => process.exit(0));
