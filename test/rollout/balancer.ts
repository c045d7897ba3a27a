import { createHash } from 'node:crypto';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { SHARD_HEADER } from './steady-load.ts';

/** What stands before several instances. */
export interface Balancer {
  readonly port: number;
  /** Requests that were sent to another instance than the first one chosen. */
  readonly retries: number;
  stop(): Promise<void>;
}

type Server = { readonly port: number; readonly agent: Agent; isUp: boolean; failures: number };

const READS =
  /AuthzService\/(?:Check|BatchCheck|Expand|ListObjects|ReadRelationTuples|ExportSubjectGrants)$|QueryService\/\w+$|TupleService\/StreamTuples$|^\/v1\/tuples(?:\?|$)/;
const PROBE_MS = 100;
/** Probes that fail before an instance is left out; one that succeeds brings it back. */
const FALL = 2;

/**
 * As deploy/haproxy.cfg, for HTTP/1.1 and in this process: the instance with the highest hash of its
 * port and the shard's header gets a request, as long as /readyz says so; what could not be sent goes to the next
 * one, and what was sent without an answer too if it only reads.
 */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const servers: readonly Server[] = ports.map((port) => ({
    port,
    agent: new Agent({ keepAlive: true }),
    isUp: false,
    failures: 0,
  }));
  let retries = 0;
  const listener = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.once('end', () => {
      void forward(servers, incoming, Buffer.concat(parts), outgoing, () => void retries++);
    });
  });
  listener.keepAliveTimeout = 60_000;
  const probing = setInterval(() => void probeAll(servers), PROBE_MS);
  await probeAll(servers);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    port: (listener.address() as AddressInfo).port,
    get retries() {
      return retries;
    },
    stop: async () => {
      clearInterval(probing);
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
      for (const { agent } of servers) agent.destroy();
    },
  };
}

/** The order in which the servers are asked about a shard. */
function ranked(servers: readonly Server[], shard: string): readonly Server[] {
  const score = ({ port }: Server): string =>
    createHash('md5').update(`${port} ${shard}`).digest('hex');
  return servers
    .filter(({ isUp }) => isUp)
    .map((server) => ({ server, score: score(server) }))
    .toSorted((a, b) => (a.score < b.score ? 1 : -1))
    .map(({ server }) => server);
}

async function forward(
  servers: readonly Server[],
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  onRetry: () => void,
): Promise<void> {
  const isRead = READS.test(incoming.url ?? '');
  const candidates = ranked(servers, String(incoming.headers[SHARD_HEADER] ?? ''));
  for (const [at, server] of candidates.entries()) {
    if (at > 0) onRetry();
    const outcome = await send(server, incoming, body, outgoing);
    if (outcome === 'answered') return;
    if (outcome === 'not sent') server.isUp = false;
    else if (!isRead) break;
  }
  outgoing.writeHead(502).end('no instance answered');
}

function send(
  server: Server,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
): Promise<'answered' | 'not sent' | 'no answer'> {
  return new Promise((resolve) => {
    const { method, url: path, headers } = incoming;
    const { connection: _, ...passed } = headers;
    const sent = request(
      { host: '127.0.0.1', port: server.port, agent: server.agent, method, path, headers: passed },
      (answer) => {
        const { connection: __, ...given } = answer.headers;
        outgoing.writeHead(answer.statusCode ?? 500, given);
        answer.pipe(outgoing);
        answer.once('end', () => resolve('answered'));
        answer.once('error', () => {
          outgoing.destroy();
          resolve('answered');
        });
      },
    );
    sent.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'not sent' : 'no answer'),
    );
    sent.end(body);
  });
}

async function probeAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map(probe));
}

async function probe(server: Server): Promise<void> {
  const isReady = await fetch(`http://127.0.0.1:${server.port}/readyz`, {
    signal: AbortSignal.timeout(2_000),
    headers: { connection: 'close' },
  }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
  server.failures = isReady ? 0 : server.failures + 1;
  if (isReady) server.isUp = true;
  else if (server.failures >= FALL) server.isUp = false;
}

/** Ports of the loopback that nobody uses at the moment. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const listeners = Array.from({ length: count }, () => createTcpServer());
  await Promise.all(
    listeners.map((one) => new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))),
  );
  const ports = listeners.map((one) => (one.address() as AddressInfo).port);
  await Promise.all(listeners.map((one) => new Promise((resolve) => one.close(resolve))));
  return ports;
}
