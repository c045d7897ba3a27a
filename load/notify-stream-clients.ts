/**
 * Holds many live streams open in a process of its own, so that receiving disturbs neither the service
 * nor the generator. Started by scenarios/notify-live.ts, which it talks to over the channel of fork.
 */
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';

/** What the scenario tells this process. */
export type StreamCommand =
  | { readonly kind: 'open'; readonly port: number; readonly paths: readonly string[] }
  | { readonly kind: 'report' };

/** What this process has received. */
export type StreamReport = {
  readonly kind: 'report';
  readonly openCount: number;
  /** Notifications with a due time, which are the measured ones. */
  readonly received: number;
  /** Notifications whose sequence did not follow the one before on the same stream. */
  readonly outOfOrder: number;
  readonly gapEvents: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
};
export type StreamAnswer = StreamReport | { readonly kind: 'opened'; readonly tookMs: number };

/** Connections that are being opened at once. */
const OPENING_MAX = 50;

const latency = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
let openCount = 0;
let received = 0;
let outOfOrder = 0;
let gapEvents = 0;

/** Opens one stream; resolves with its first event. */
function openStream(port: number, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket: Socket = connect(port, '127.0.0.1');
  let rest = '';
  let last = -1;
  const onEvent = (event: string, nowNs: bigint): void => {
    const id = /^id: (\d+)$/m.exec(event)?.[1];
    if (event.includes('event: gap')) gapEvents++;
    if (id === undefined) return;
    const sequence = Number(id);
    if (last === -1) {
      openCount++;
      resolve();
    } else if (sequence !== last + 1) outOfOrder++;
    last = sequence;
    const dueUs = /"due_us":(\d+)/.exec(event)?.[1];
    if (dueUs === undefined) return;
    received++;
    latency.record(Math.max(1, Number(nowNs - BigInt(dueUs) * 1000n)));
  };
  socket.setNoDelay(true).setEncoding('latin1');
  socket.on('data', (text) => {
    const nowNs = process.hrtime.bigint();
    const blocks = (rest + text.toString()).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) onEvent(block, nowNs);
  });
  socket.on('error', reject);
  socket.on('close', () => {
    openCount--;
    reject(new Error('a stream was closed'));
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n`);
  return promise;
}

async function openAll(port: number, paths: readonly string[]): Promise<void> {
  const startMs = performance.now();
  const waiting = paths.values();
  const opener = async (): Promise<void> => {
    for (const path of waiting) await openStream(port, path);
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, opener));
  answer({ kind: 'opened', tookMs: performance.now() - startMs });
}

function report(): void {
  const ms = (percentile: number): number => latency.percentile(percentile) / 1e6;
  answer({
    kind: 'report',
    openCount,
    received,
    outOfOrder,
    gapEvents,
    p50Ms: ms(50),
    p90Ms: ms(90),
    p99Ms: ms(99),
    p999Ms: ms(99.9),
    maxMs: latency.max / 1e6,
  });
}

function answer(message: StreamAnswer): void {
  process.send?.(message);
}

process.on('message', (command: StreamCommand) => {
  if (command.kind === 'open') void openAll(command.port, command.paths);
  else report();
});
// The scenario has ended, however it did.
process.on('disconnect', () => process.exit(0));
