import http from 'node:http';
import net from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpExchange } from '../../src/http/http-exchange.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { byLength } from '../support/test-length.ts';
import { connectionBytes, cuts } from './http1-fuzz-messages.ts';
import { waitFor } from './start-server.ts';

/*
 * Random connections of HTTP/1, read by our own framing, in random pieces, and by node:http in one piece. Both see the same requests
 * with the same bodies, and refuse or keep the connection alike. Where one of them is stricter the cause has a name below.
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

/** What we refuse and node:http takes, by our words. */
const STRICTER: Readonly<Record<string, string>> = {
  'Transfer-Encoding may be chunked alone':
    'another coding is not decoded, and a second field is a trick of smugglers',
  'HTTP/1.0 has no chunks': 'RFC 9112 §6.1: its framing is to be taken for faulty',
  'one Host is needed': 'RFC 9112 §3.2: a second one is refused; node:http takes the first',
  'Authorization is given twice': 'which of the two counts is not ours to guess',
  'Content-Length is no number': 'one without a value, or with more digits than a number has',
  'Content-Length is given twice': 'RFC 9110 §8.6 allows it',
  'Content-Length and Transfer-Encoding exclude each other': 'RFC 9112 §6.3 allows it',
  'the version of HTTP is another one': 'node:http takes HTTP/2.0 and HTTP/0.9 for HTTP/1.1',
  'the request line names no version':
    'node:http takes a line without a version for HTTP/0.9 (POST /plain!HTTP/1.1)',
  'the request line has no method':
    'before a request only CR LF is skipped; node:http skips CR or LF alone',
  'the target is no path': 'a target of no form of RFC 9112 §3.2',
  'the target has a character that it may not have': 'DEL and what ends a line',
  'the size of a chunk is too long': 'leading zeros beyond 13 digits',
  'Expect may be 100-continue alone': 'the connection is closed behind 417; node:http reads on',
  'Method Not Allowed': 'CONNECT: node:http gives the connection away',
};
/** What node:http refuses and we take: its code, and what the request that we took, or all the bytes, must be like. */
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
    holds: (taken) => taken === undefined || /[\x80-\xff]/.test(taken.url),
  },
  {
    code: 'HPE_INVALID_VERSION',
    why: 'a method of this name that is not at the beginning has nothing to do with HTTP/2',
    holds: (taken) => taken?.method === 'PRI',
  },
  {
    code: 'HPE_INVALID_CHUNK_SIZE',
    why: 'RFC 9112 §7.1.1: blanks before an extension',
    holds: (_taken, bytes) => /[0-9a-f][ \t]+[;\r]/i.test(bytes),
  },
  {
    code: 'HPE_STRICT',
    why: 'an extension is dropped, whatever its form',
    holds: (_taken, bytes) => /[0-9a-f][ \t]*;[^\r]*\r/i.test(bytes),
  },
];

type Seen = { readonly method: string; readonly url: string; body: string };
/** How a reader took the bytes of one connection. */
type Reading = {
  readonly requests: readonly Seen[];
  /** Why it refused what is behind the requests; '' where it did not. */
  readonly refusal: string;
  readonly isClosed: boolean;
};

let logged: Seen[] = [];
let code = '';
const ours = createHttpServer({
  host: '127.0.0.1',
  port: 0,
  http2: { onStream: (stream) => stream.close() },
});
ours.fallback(answer);
const oracle = http.createServer({ maxHeaderSize: 16_384, keepAliveTimeout: 0 }, noteByNode);
let oursPort = 0;
let oraclePort = 0;

beforeAll(async () => {
  oursPort = (await ours.listen()).port;
  await new Promise<void>((resolve) => void oracle.listen(0, '127.0.0.1', resolve));
  oraclePort = (oracle.address() as net.AddressInfo).port;
});
afterAll(async () => {
  await ours.stop(0);
  oracle.closeAllConnections();
  oracle.close();
});

function answer(exchange: HttpExchange): void {
  const method = exchange.method();
  const query = exchange.query();
  const url = query === '' ? exchange.path() : `${exchange.path()}?${query}`;
  const number = String(logged.length);
  if (url === '/early') {
    logged.push({ method, url, body: '' });
    exchange.send(200, 'text/plain', 'early', ['x-number', number]);
    return;
  }
  exchange.readBody(
    BODY_BYTES_MAX,
    (bytes) => {
      const place = String(logged.length);
      logged.push({ method, url, body: Buffer.from(bytes).toString('latin1') });
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
  const { received, isClosed } = await send(oraclePort, [bytes], quietTurns);
  if (code === '' && /HTTP\/1\.1 4\d\d /.test(received)) code = 'NODE_HTTP_4XX';
  const requests = noted.filter(({ isWhole }) => isWhole).map(({ seen }) => seen);
  const refusal = code;
  while (oracleConnections.size > 0) await turn();
  return { requests, refusal, isClosed };
}

async function readByUs(pieces: readonly Buffer[], quietTurns: number): Promise<Reading> {
  logged = [];
  const { received, isClosed, error } = await send(oursPort, pieces, quietTurns);
  const requests = [...logged];
  // What it still reads of this connection is none of the next one's.
  while (ours.connectionCount > 0) await turn();
  expect(error, 'no reset overtakes an answer').toBe('');
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) =>
    Number(status),
  );
  const answers = statuses.filter((status) => status !== 100);
  // Each request has one answer, in order, and a refusal is the last.
  const numbers = [...received.matchAll(/x-number: (\d+)\r\n/g)].map(([, number]) =>
    Number(number),
  );
  expect(numbers).toEqual(requests.map((_, at) => at));
  expect(answers.slice(0, requests.length).every((status) => status === 200)).toBe(true);
  const refused = answers.slice(requests.length);
  expect(refused.length).toBeLessThanOrEqual(1);
  expect(refused.every((status) => [400, 405, 417, 431, 505].includes(status))).toBe(true);
  const problem = /"message":"([^"]*)"/.exec(received)?.[1] ?? '';
  const refusal = refused.length === 0 ? '' : problem;
  if (refusal !== '') expect(isClosed, 'nothing is read behind what was refused').toBe(true);
  return { requests, refusal, isClosed };
}

/** RFC 9112 §9.3: close ends a connection whatever else is said; node:http keeps one of HTTP/1.0 that says keep-alive as well. */
function endsAfterBoth(text: string): boolean {
  return /HTTP\/1\.0\r\n(?:[^\r\n]*\r\n)*?connection:[^\r\n]*(?:keep-alive[^\r\n]*close|close[^\r\n]*keep-alive)/i.test(
    text,
  );
}

/** What differs and has no name; '' where nothing does. */
function differenceOf(own: Reading, other: Reading, text: string): string {
  const common = Math.min(own.requests.length, other.requests.length);
  const at = own.requests.findIndex(
    (one, i) => i < common && JSON.stringify(one) !== JSON.stringify(other.requests[i]),
  );
  if (at >= 0) {
    return `request ${at}: ${shown(own.requests[at])} by us, ${shown(other.requests[at])} by node:http`;
  }
  const isAlike = own.requests.length === other.requests.length;
  if (
    isAlike &&
    own.isClosed === other.isClosed &&
    (own.refusal === '') === (other.refusal === '')
  ) {
    return '';
  }
  // It has its answer already: the connection is closed without another one.
  const isAnswered = own.requests.at(-1)?.url === '/early' && own.isClosed && other.isClosed;
  if (isAlike && isAnswered) return '';
  if (own.requests.length <= other.requests.length && own.refusal in STRICTER) return '';
  if (own.requests.length <= other.requests.length && own.isClosed && endsAfterBoth(text))
    return '';
  const taken = own.requests[other.requests.length];
  const isLaxer = LAXER.some(
    ({ code: cause, holds }) => cause === other.refusal && holds(taken, text),
  );
  if (own.requests.length >= other.requests.length && isLaxer) return '';
  return (
    `we took ${own.requests.length} requests, ${end(own)}; ` +
    `node:http ${other.requests.length}, ${end(other)}`
  );
}

const shortened = (text: string): string => text.replaceAll(/x{20,}/g, 'x…').slice(0, 1_500);
const shown = (one: Seen | undefined): string => JSON.stringify(one)?.slice(0, 200) ?? 'nothing';
const end = ({ refusal, isClosed }: Reading): string =>
  refusal === '' ? (isClosed ? 'closed' : 'open') : `refused: ${refusal}`;

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.filter((place) => place > 0 && place < bytes.length))];
  const bounds = [0, ...at.toSorted((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((to, i) => bytes.subarray(bounds[i], to));
}

/** What differs after so many quiet turns; '' where nothing does. Errors: an answer that is not in order. */
async function differenceBetween(
  bytes: Buffer,
  places: readonly number[],
  quietTurns: number,
): Promise<string> {
  const own = await readByUs(cut(bytes, places), quietTurns);
  const whole = await readByUs([bytes], quietTurns);
  // Where the pieces end says nothing.
  if (JSON.stringify(whole) !== JSON.stringify(own)) {
    return `${end(own)} in pieces, ${end(whole)} whole`;
  }
  return differenceOf(own, await readByNode(bytes, quietTurns), bytes.toString('latin1'));
}

test('random connections are read as node:http reads them', { timeout: 900_000 }, async () => {
  const compare = async (bytes: Buffer, places: readonly number[]): Promise<void> => {
    let difference: unknown = '';
    for (const turns of QUIET_TURNS) {
      try {
        difference = await differenceBetween(bytes, places, turns);
      } catch (error) {
        difference = error;
      }
      if (difference === '') return;
    }
    expect.fail(`${String(difference)}\n${JSON.stringify(shortened(bytes.toString('latin1')))}`);
  };
  const property = fc.asyncProperty(connectionBytes, cuts, compare);
  process.stdout.write(`http1-fuzz: seed ${seed}\n`);
  await fc.assert(property, { seed, numRuns: RUNS });
  // Nothing of what came stays behind.
  await waitFor(() => ours.inFlightCount === 0 && ours.connectionCount === 0);
});
