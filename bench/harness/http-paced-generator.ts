// The process that http-paced.ts starts: sends what its one argument says, and prints one JSON line.
import { connect, type Socket } from 'node:net';
import type { PacedLoad } from './http-paced.ts';

const load = JSON.parse(process.argv[2] ?? '') as PacedLoad;
const fields = Object.entries(load.headers).map(([name, value]) => `${name}: ${value}\r\n`);
const requests = load.bodies.map((body) =>
  Buffer.from(
    `POST ${load.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${fields.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  ),
);
const total = Math.round(load.perSecond * load.seconds);
const everyMs = 1000 / load.perSecond;
const latencies = new Float64Array(total);
const free: Connection[] = [];
let sent = 0;
let answered = 0;

type Connection = { readonly socket: Socket; dueMs: number };

const connections = await Promise.all(
  Array.from({ length: load.connections }, async (): Promise<Connection> => {
    const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return { socket, dueMs: 0 };
  }),
);
const startMs = performance.now() + 10;
await new Promise<void>((resolve) => {
  for (const connection of connections) {
    free.push(connection);
    connection.socket.on('error', fail);
    // An answer is shorter than a segment, and one is under way on a connection.
    connection.socket.on('data', (chunk: Buffer) => {
      if (chunk.toString('latin1', 0, 12) !== 'HTTP/1.1 200')
        fail(new Error(chunk.toString('latin1')));
      latencies[answered] = performance.now() - connection.dueMs;
      answered += 1;
      free.push(connection);
      if (answered === total) resolve();
    });
  }
  const poll = (): void => {
    const nowMs = performance.now();
    while (sent < total && free.length > 0 && startMs + sent * everyMs <= nowMs) {
      const connection = free.pop() as Connection; // as there is one
      connection.dueMs = startMs + sent * everyMs;
      connection.socket.write(requests[sent % requests.length] as Buffer);
      sent += 1;
    }
    if (sent < total) setImmediate(poll);
  };
  poll();
});
const lastedS = (performance.now() - startMs) / 1000;
for (const { socket } of connections) socket.destroy();
latencies.sort();
const at = (share: number): number => latencies[Math.floor(share * (total - 1))] ?? Number.NaN;
const result = {
  count: total,
  perSecond: Math.round(total / lastedS),
  p50Ms: at(0.5),
  p99Ms: at(0.99),
};
process.stdout.write(`${JSON.stringify(result)}\n`);

function fail(error: Error): never {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
}
