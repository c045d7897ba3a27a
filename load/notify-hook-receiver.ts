/**
 * Receives webhooks in a process of its own: `/quiet` is measured, `/well` answered, `/stalled` never. Started by
 * scenarios/notify-fair.ts, which it talks to over the channel of fork.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHistogram } from 'node:perf_hooks';

/** What the scenario tells this process. */
type HookCommand = { readonly kind: 'listen' } | { readonly kind: 'report' };

/** What has been received of the quiet tenant. */
export type HookReport = {
  readonly kind: 'report';
  readonly received: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};
type HookAnswer = HookReport | { readonly kind: 'listening'; readonly port: number };

const latency = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
let received = 0;

const server = createServer((request, response) => {
  const nowNs = process.hrtime.bigint();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.url === '/stalled') return;
    response.writeHead(204).end();
    if (request.url !== '/quiet') return;
    const dueUs = /"due_us":(\d+)/.exec(Buffer.concat(chunks).toString())?.[1];
    if (dueUs === undefined) return;
    received++;
    latency.record(Math.max(1, Number(nowNs - BigInt(dueUs) * 1000n)));
  });
});

function report(): void {
  const ms = (percentile: number): number => latency.percentile(percentile) / 1e6;
  answer({
    kind: 'report',
    received,
    p50Ms: ms(50),
    p99Ms: ms(99),
    maxMs: latency.max / 1e6,
  });
}

function answer(message: HookAnswer): void {
  process.send?.(message);
}

process.on('message', (command: HookCommand) => {
  if (command.kind === 'report') return report();
  server.listen(0, '127.0.0.1', () => {
    answer({ kind: 'listening', port: (server.address() as AddressInfo).port });
  });
});
// The scenario has ended, however it did.
process.on('disconnect', () => process.exit(0));
