/**
 * Yields what HTTP/2 by hand over a socket could save beside node:http2 at most: unary calls of gRPC a second and a
 * CPU-second of the server, both servers answering the same with bytes made beforehand, in turns; medians of the rounds' ratios.
 * Run: npm run bench -- grpc-frames, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS, BENCH_STREAMS (of each
 * connection). Prints one JSON line.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { create, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema } from '../src/gen/workspace/v1/authz_service_pb.ts';
import { enveloped, Http2Generator, type Http2Rate } from './harness/http2-rate.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 1);
const STREAMS = Number(process.env['BENCH_STREAMS'] ?? 32);

const bodies = Array.from({ length: 100 }, (_, i) => {
  const question = {
    namespace: 'resource',
    objectId: `doc-${i}`,
    relation: 'viewer',
    subjectUserId: 'alice',
  };
  const message = toBinary(CheckRequestSchema, create(CheckRequestSchema, question));
  return enveloped(message).toString('base64');
});
const servers: ChildProcess[] = [];
const generator = new Http2Generator();
try {
  const byHand = await startServer('bench/grpc-frames-server.ts');
  const byNode = await startServer('bench/grpc-echo-server.ts');
  const rounds: (readonly [hand: Http2Rate, node: Http2Rate])[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const hand = await load(byHand);
    const node = await load(byNode);
    if (round > 0) rounds.push([hand, node]);
  }
  const usOf = (rate: Http2Rate): number => 1e6 / rate.perCpuSecond;
  const result = {
    bench: 'grpc-frames',
    connections: CONNECTIONS,
    streams: STREAMS,
    cpuUsByHand: median(rounds.map(([hand]) => usOf(hand))),
    cpuUsByNode: median(rounds.map(([, node]) => usOf(node))),
    ratioPerSecond: median(rounds.map(([hand, node]) => hand.perSecond / node.perSecond)),
    ratioPerCpuSecond: median(rounds.map(([hand, node]) => hand.perCpuSecond / node.perCpuSecond)),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  generator.stop();
  for (const server of servers) server.kill();
}

async function startServer(file: string): Promise<{ readonly port: number; readonly pid: number }> {
  const server = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  const [said] = (await once(server.stdout, 'data')) as [Buffer];
  return { port: Number(said.toString().trim()), pid: server.pid ?? 0 };
}

function load({ port, pid }: { readonly port: number; readonly pid: number }): Promise<Http2Rate> {
  const headers = {
    authorization: `Bearer ${'t'.repeat(40)}`,
    te: 'trailers',
    'content-type': 'application/grpc',
    'user-agent': 'bench',
  };
  const job = {
    port,
    path: '/workspace.v1.AuthzService/Check',
    headers,
    bodies,
    hasTrailers: true,
    connections: CONNECTIONS,
    streams: STREAMS,
    seconds: SECONDS,
    perSecond: 0,
  };
  return generator.measure(job, pid);
}

function median(values: readonly number[]): number {
  const middle = values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
  return Math.round(middle * 100) / 100;
}
