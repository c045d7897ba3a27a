import http from 'node:http';
import net from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpExchange } from '../../src/http/exchange/http-exchange.ts';
import {
  createHttpServer,
  type Http1Counts,
  type Http1Parser,
  type HttpServer,
} from '../../src/http/listener/http-server.ts';
import { byLength } from '../support/test-length.ts';
import { connectionBytes, cuts } from './http1-fuzz-messages.ts';
import { waitFor } from './start-server.ts';

/*
 * Random connections of HTTP/1, read by a listener in random pieces, and by node:http in one piece. Where node:http reads all of them both see the
 * same requests with the same bodies, and refuse or keep the connection alike; where one of them is stricter the cause has a name below. With
 * uWebSockets.js behind the first request a listener takes what node:http takes in the same order, and may end sooner.
 * FUZZ_RUNS multiplies the runs; SEED repeats one.
 */
const RUNS = Math.ceil(byLength(150, 600) * Number(process.env['FUZZ_RUNS'] ?? 1));
/**
 * One seed by default: what node:http does with damaged bytes is not ours to find in every run. FUZZ_RUNS draws others, and
 * what they find gets a name here or a mend.
 */
const isFresh = process.env['FUZZ_RUNS'] !== undefined;
const seed = Number(process.env['SEED'] ?? (isFresh ? Date.now() % 2 ** 31 : 1));
const BODY_BYTES_MAX = 1_000_000;
/** Turns of the event loop in which nothing happens: all that was sent is read. Longer where the readers seem to differ. */
const QUIET_TURNS = [25, 1_000] as const;

/** What we refuse and node:http takes, by our words, where node:http reads for us, too. */
const STRICTER: Readonly<Record<string, string>> = {
  'Transfer-Encoding may be chunked alone':
    'another coding is not decoded, and a second field is a trick of smugglers',
  'HTTP/1.0 has no chunks': 'RFC 9112 §6.1: its framing is to be taken for faulty',
  'one Host is needed': 'RFC 9112 §3.2: a second one is refused; node:http takes the first',
  'Authorization is given twice': 'which of the two counts is not ours to guess',
  'the version of HTTP is another one': 'node:http takes HTTP/2.0 and HTTP/0.9 for HTTP/1.1',
  'Expect may be 100-continue alone': 'the connection is closed behind 417; node:http reads on',
  'Method Not Allowed': 'CONNECT: node:http gives the connection away',
};
const BEYOND_ASCII = /[^\0-\x7f]/;
/** What node:http refuses and uWebSockets.js takes: its code, and what the request that we took, or all the bytes, must be like. */
const LAXER: readonly {
  readonly code: string;
  readonly why: string;
  readonly holds: (taken: Seen | undefined, bytes: string) => boolean;
}[] = [
  {
    code: 'HPE_INVALID_METHOD',
    why: 'any token is a method; the route says 404 or 405',
    holds: (taken) => taken === undefined || !http.METHODS.includes(taken.method),
  },
  {
    code: 'HPE_INVALID_URL',
    why: 'bytes beyond ASCII in a target are passed on as they are',
    holds: (taken) => taken === undefined || BEYOND_ASCII.test(taken.url),
  },
  {
    code: 'HPE_INVALID_VERSION',
    why: 'a method of this name that is not at the beginning has nothing to do with HTTP/2',
    holds: (taken) => taken?.method === 'PRI',
  },
];

type Seen = {
  readonly method: string;
  readonly url: string;
  body: string;
  /** It came in chunks; of ours alone. */
  readonly isCoded?: boolean;
};
/** How a reader took the bytes of one connection. */
type Reading = {
  readonly requests: readonly Seen[];
  /** Why it refused what is behind the requests; '' where it did not. */
  readonly refusal: string;
  readonly isClosed: boolean;
};

let logged: Seen[] = [];
let code = '';
/** Listeners by who reads HTTP/1. */
const ours = { node: listener('node'), uws: listener('uws') };
const oracle = http.createServer({ maxHeaderSize: 16_384, keepAliveTimeout: 0 }, noteByNode);
const ports = { node: 0, uws: 0, oracle: 0 };

function listener(http1: Http1Parser): HttpServer {
  const http2 = { onStream: (stream: { close: () => void }) => stream.close() };
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1, http2 });
  server.fallback(answer);
  return server;
}

beforeAll(async () => {
  ports.node = (await ours.node.listen()).port;
  ports.uws = (await ours.uws.listen()).port;
  await new Promise<void>((resolve) => void oracle.listen(0, '127.0.0.1', resolve));
  ports.oracle = (oracle.address() as net.AddressInfo).port;
});
afterAll(async () => {
  await Promise.all([ours.node.stop(0), ours.uws.stop(0)]);
  oracle.closeAllConnections();
  oracle.close();
});

function answer(exchange: HttpExchange): void {
  const method = exchange.method();
  const query = exchange.query();
  const url = query === '' ? exchange.path() : `${exchange.path()}?${query}`;
  const number = String(logged.length);
  const isCoded = exchange.header('transfer-encoding') !== '';
  if (url === '/early') {
    logged.push({ method, url, body: '', isCoded });
    exchange.send(200, 'text/plain', 'early', ['x-number', number]);
    return;
  }
  exchange.readBody(
    BODY_BYTES_MAX,
    (bytes) => {
      const place = String(logged.length);
      logged.push({ method, url, body: Buffer.from(bytes).toString('latin1'), isCoded });
      exchange.send(200, 'text/plain', 'whole', ['x-number', place]);
    },
    null,
  );
}

/** Its requests in their order, those that have not come whole among them. */
type Noted = { readonly request: http.IncomingMessage; readonly seen: Seen; isWhole: boolean };
let noted: Noted[] = [];

function noteByNode(request: http.IncomingMessage, response: http.ServerResponse): void {
  // The absolute form names a host, which is not of the path.
  const path = (request.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '');
  const url = path.startsWith('/') || path === '*' ? path : `/${path}`;
  const isEarly = url === '/early';
  const seen = { method: request.method ?? '', url, body: '' };
  const one: Noted = { request, seen, isWhole: isEarly };
  noted.push(one);
  request.on('data', (chunk: Buffer) => {
    if (!isEarly) seen.body += chunk.toString('latin1');
  });
  request.on('end', () => {
    one.isWhole = true;
    response.end();
  });
}

oracle.on('clientError', (error: NodeJS.ErrnoException, socket) => {
  // What is behind a last request is not looked at by us, and refused by it.
  if (code === '' && error.code !== 'HPE_CLOSED_CONNECTION') code = error.code ?? error.message;
  for (const one of noted) {
    while (one.request.read() !== null);
    if (one.request.complete) one.isWhole = true;
  }
  socket.destroy();
});
const oracleConnections = new Set<net.Socket>();
oracle.on('connection', (socket) => {
  oracleConnections.add(socket);
  socket.once('close', () => oracleConnections.delete(socket));
});
oracle.on('connect', (_request, socket) => {
  code = 'CONNECT';
  socket.destroy();
});

/** Sends the pieces and waits until the connection ends or nothing happens any more. */
async function send(port: number, pieces: readonly Buffer[], quietTurns: number) {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  let received = '';
  let isClosed = false;
  let error = '';
  let activity = 0;
  socket.on('data', (bytes: Buffer) => {
    received += bytes.toString('latin1');
    activity += 1;
  });
  socket.on('error', (failure: NodeJS.ErrnoException) => (error = failure.code ?? ''));
  for (const event of ['end', 'close']) socket.once(event, () => (isClosed = true));
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
  for (const piece of pieces) {
    if (isClosed) break;
    socket.write(piece);
    await turn();
  }
  let quiet = 0;
  for (
    let before = -1;
    !isClosed && quiet < quietTurns;
    quiet = before === activity ? quiet + 1 : 0
  ) {
    before = activity;
    await turn();
    if (socket.writableLength > 0) activity += 1;
  }
  socket.destroy();
  return { received, isClosed, error };
}

/** Timers, sockets and what they call. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => setImmediate(resolve), 0);
  });
}

async function readByNode(bytes: Buffer, quietTurns: number): Promise<Reading> {
  noted = [];
  code = '';
  const { received, isClosed } = await send(ports.oracle, [bytes], quietTurns);
  if (code === '' && /HTTP\/1\.1 4\d\d /.test(received)) code = 'NODE_HTTP_4XX';
  const requests = noted.filter(({ isWhole }) => isWhole).map(({ seen }) => seen);
  const refusal = code;
  while (oracleConnections.size > 0) await turn();
  return { requests, refusal, isClosed };
}

async function readByUs(
  parser: keyof Http1Counts,
  pieces: readonly Buffer[],
  quietTurns: number,
): Promise<Reading> {
  logged = [];
  const { received, isClosed, error } = await send(ports[parser], pieces, quietTurns);
  // What it still reads of this connection is none of the next one's.
  while (ours[parser].connectionCount > 0) await turn();
  const requests = [...logged];
  const isWhole = parser === 'node';
  if (isWhole) expect(error, 'no reset overtakes an answer').toBe('');
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) =>
    Number(status),
  );
  const answers = statuses.filter((status) => status !== 100);
  // Each request has one answer, in order, and a refusal is the last.
  const numbers = [...received.matchAll(/x-number: (\d+)\r\n/g)].map(([, number]) =>
    Number(number),
  );
  const answered = isWhole ? requests : requests.slice(0, numbers.length);
  expect(numbers).toEqual(answered.map((_, at) => at));
  expect(answers.slice(0, answered.length).every((status) => status === 200)).toBe(true);
  const refused = answers.slice(answered.length);
  expect(refused.length).toBeLessThanOrEqual(1);
  expect(refused.every((status) => [400, 405, 417, 431, 505].includes(status))).toBe(true);
  const problem = /"message":"([^"]*)"/.exec(received)?.[1] ?? (isWhole ? '' : 'refused');
  const refusal = refused.length === 0 ? '' : problem;
  if (refusal !== '') expect(isClosed, 'nothing is read behind what was refused').toBe(true);
  return { requests, refusal, isClosed };
}

/** What node:http refuses has a name. */
function isLaxer(other: Reading, taken: Seen | undefined, text: string): boolean {
  return LAXER.some(({ code: cause, holds }) => cause === other.refusal && holds(taken, text));
}

/** What differs and has no name; '' where nothing does. */
function differenceOf(own: Reading, other: Reading): string {
  const common = Math.min(own.requests.length, other.requests.length);
  const at = own.requests.findIndex((one, i) => i < common && !isAlike(one, other.requests[i]));
  if (at >= 0) {
    return `request ${at}: ${shown(own.requests[at])} by us, ${shown(other.requests[at])} by node:http`;
  }
  const isEven = own.requests.length === other.requests.length;
  if (
    isEven &&
    own.isClosed === other.isClosed &&
    (own.refusal === '') === (other.refusal === '')
  ) {
    return '';
  }
  // It has its answer already: the connection is closed without another one.
  const isAnswered = own.requests.at(-1)?.url === '/early' && own.isClosed && other.isClosed;
  if (isEven && isAnswered) return '';
  // One that waits and turns out malformed meanwhile is not begun.
  const isLastEarly = other.requests.at(-1)?.url === '/early' && other.refusal !== '';
  const isOneLess = own.requests.length === other.requests.length - 1;
  if (isOneLess && own.refusal !== '' && isLastEarly) return '';
  if (own.requests.length <= other.requests.length && own.refusal in STRICTER) return '';
  return (
    `we took ${own.requests.length} requests, ${end(own)}; ` +
    `node:http ${other.requests.length}, ${end(other)}`
  );
}

const shortened = (text: string): string => text.replaceAll(/x{20,}/g, 'x…').slice(0, 1_500);
const isAlike = (one: Seen | undefined, other: Seen | undefined): boolean =>
  one?.method === other?.method && one?.url === other?.url && one?.body === other?.body;
const shown = (one: Seen | undefined): string => JSON.stringify(one)?.slice(0, 200) ?? 'nothing';
const end = ({ refusal, isClosed }: Reading): string =>
  refusal === '' ? (isClosed ? 'closed' : 'open') : `refused: ${refusal}`;

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.filter((place) => place > 0 && place < bytes.length))];
  const bounds = [0, ...at.toSorted((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((to, i) => bytes.subarray(bounds[i], to));
}

function outcomeOf({ requests, refusal, isClosed }: Reading): unknown {
  const isLastEarly = isClosed && requests.at(-1)?.url === '/early';
  if (isLastEarly) return { requests: requests.slice(0, -1), isRefused: true, isClosed };
  return { requests, isRefused: refusal !== '', isClosed };
}

/** How a listener differs in what it read after so many quiet turns; '' where it does not. Errors: an answer that is not in order. */
type Difference = (bytes: Buffer, places: readonly number[], quietTurns: number) => Promise<string>;

const differenceOnNode: Difference = async (bytes, places, quietTurns) => {
  const own = await readByUs('node', cut(bytes, places), quietTurns);
  const whole = await readByUs('node', [bytes], quietTurns);
  // Where the pieces end says nothing, but for which is found first: of two things that are wrong, or of an answer and what is wrong.
  if (JSON.stringify(outcomeOf(whole)) !== JSON.stringify(outcomeOf(own))) {
    return `${end(own)} in pieces, ${end(whole)} whole`;
  }
  return differenceOf(own, await readByNode(bytes, quietTurns));
};

/** What is taken is what node:http takes, as far as it goes. */
const differenceOnUws: Difference = async (bytes, places, quietTurns) => {
  const { requests } = await readByUs('uws', cut(bytes, places), quietTurns);
  const other = await readByNode(bytes, quietTurns);
  for (const [i, one] of requests.entries()) {
    const theirs = other.requests[i];
    if (isAlike(one, theirs)) continue;
    // Behind a body in chunks of a later request, which may be misread, nothing is taken.
    if (i > 0 && one.isCoded === true && i === requests.length - 1) continue;
    if (theirs === undefined && isLaxer(other, one, bytes.toString('latin1'))) return '';
    return `request ${i} of ${requests.length}: ${shown(one)} by us, ${shown(theirs)} by node:http (${end(other)})`;
  }
  return '';
};

test.each([
  ['by node:http alone, all that node:http reads', differenceOnNode],
  ['with uWebSockets.js, nothing that node:http does not read', differenceOnUws],
])('random connections are read %s', { timeout: 900_000 }, async (_name, difference) => {
  const compare = async (bytes: Buffer, places: readonly number[]): Promise<void> => {
    let found: unknown = '';
    for (const turns of QUIET_TURNS) {
      try {
        found = await difference(bytes, places, turns);
      } catch (error) {
        found = error;
      }
      if (found === '') return;
    }
    expect.fail(`${String(found)}\n${JSON.stringify(shortened(bytes.toString('latin1')))}`);
  };
  const property = fc.asyncProperty(connectionBytes, cuts, compare);
  process.stdout.write(`http1-fuzz: seed ${seed}\n`);
  await fc.assert(property, { seed, numRuns: RUNS });
  // Nothing of what came stays behind.
  for (const server of Object.values(ours)) {
    await waitFor(() => server.inFlightCount === 0 && server.connectionCount === 0);
  }
});
