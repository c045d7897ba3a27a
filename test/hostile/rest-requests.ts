import net from 'node:net';
import { gzipSync } from 'node:zlib';

/** What is sent instead of what a route expects. */
export type HostileRequest = {
  readonly name: string;
  /** Behind the path, undecoded. */
  readonly query?: string;
  /** Lines of the head. */
  readonly fields?: readonly string[];
  readonly body?: Uint8Array;
};

/** Room for a query beside all else in a head. */
const QUERY_BYTES = 15_500;
const filled = (piece: string, bytes = QUERY_BYTES): string =>
  piece.repeat(Math.floor(bytes / piece.length));
/** Names that routes know, so that what is repeated is one that counts. */
const NAMES = [
  'project_id',
  'tenant_id',
  'namespace',
  'limit',
  'cursor',
  'min_revision',
  'kinds',
  'dry_run',
  'last_event_id',
  'access_token',
  'state',
  'since',
  'kind',
  'environment',
  'from',
  'to',
  'q',
  'job',
  'step',
  'numbered',
];

/** Queries: many, long, badly encoded, repeated; what is beyond the limit of a head as well. */
export const QUERIES: readonly HostileRequest[] = [
  { name: '100,000 parameters', query: filled('a=1&', 400_000) },
  { name: 'a value of 64 KiB', query: `project_id=${'x'.repeat(65_536)}` },
  { name: 'as many parameters as fit', query: filled('a&') },
  {
    name: 'as many different ones',
    query: Array.from({ length: 2_000 }, (_, i) => `p${i}=`).join('&'),
  },
  {
    name: 'a value as long as fits',
    query: NAMES.map((name) => `${name}=${'x'.repeat(700)}`).join('&'),
  },
  ...NAMES.map((name) => ({ name: `${name} again and again`, query: filled(`${name}=1&`) })),
  {
    name: 'escapes of escapes',
    query: NAMES.map((name) => `${name}=${filled('%2525', 600)}`).join('&'),
  },
  {
    name: 'escapes that are no UTF-8',
    query: NAMES.map((name) => `${name}=${filled('%ff%c0%80', 600)}`).join('&'),
  },
  {
    name: 'half escapes',
    query: NAMES.map((name) => `${name}=%&${name}=%2&${name}=%zz`).join('&'),
  },
  { name: 'bytes that are no UTF-8', query: NAMES.map((name) => `${name}=\xff\xc0\x80`).join('&') },
  { name: 'zero bytes', query: NAMES.map((name) => `${name}=%00`).join('&') },
  {
    name: 'numbers that are none',
    query: NAMES.map((name) => `${name}=${'9'.repeat(400)}`).join('&'),
  },
  { name: 'numbers below zero', query: NAMES.map((name) => `${name}=-1e308`).join('&') },
  { name: 'names of prototypes', query: '__proto__=1&constructor=1&toString=1&hasOwnProperty=1' },
  { name: 'brackets', query: filled('a[][b]=1&') },
  { name: 'separators alone', query: filled('&=&&==') },
];

const REPEATED = [
  'content-type',
  'accept',
  'range',
  'if-none-match',
  'last-event-id',
  'origin',
  'x-request-id',
  'x-admin-secret',
];

/** Heads: many fields, long, repeated and odd ones. */
export const HEADS: readonly HostileRequest[] = [
  { name: '100 fields', fields: Array.from({ length: 100 }, (_, i) => `x-${i}: ${i}`) },
  { name: '1,000 fields', fields: Array.from({ length: 1_000 }, (_, i) => `x-${i}: ${i}`) },
  { name: 'a value as long as fits', fields: [`x-request-id: ${'x'.repeat(QUERY_BYTES)}`] },
  { name: 'a value of 64 KiB', fields: [`x-long: ${'x'.repeat(65_536)}`] },
  ...REPEATED.map((name) => ({
    name: `${name} 60 times`,
    fields: Array.from({ length: 60 }, (_, i) => `${name}: ${i}`),
  })),
  { name: 'bytes beyond ASCII', fields: REPEATED.map((name) => `${name}: \xff\xfe\x80`) },
  { name: 'ranges', fields: [`range: bytes=${filled('0-0,', 14_000)}1-`] },
  { name: 'tags', fields: [`if-none-match: ${filled('"a", ', 14_000)}*`] },
  { name: 'accepted types', fields: [`accept: ${filled('a/b;q=0.1, ', 14_000)}`] },
  { name: 'places', fields: [`last-event-id: ${'9'.repeat(14_000)}`] },
  { name: 'an odd type', fields: ['content-type: /;;charset="'] },
  { name: 'many types', fields: [`content-type: ${filled('application/json, ', 14_000)}`] },
  { name: 'a coding that is unknown', fields: ['content-encoding: br', 'accept-encoding: br;q=x'] },
  {
    name: 'codings one on the other',
    fields: [`content-encoding: ${filled('gzip, ', 14_000)}gzip`],
  },
  {
    name: 'deadlines',
    fields: [
      'connect-timeout-ms: 99999999999999',
      'grpc-timeout: 9H',
      'connect-protocol-version: x',
    ],
  },
  {
    name: 'traces',
    fields: [
      `traceparent: 00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`,
      `tracestate: ${filled('a=1,', 14_000)}`,
    ],
  },
  { name: 'cookies', fields: [`cookie: ${filled('a=1; ', 14_000)}`] },
  { name: 'blanks', fields: [`x-blank: ${' '.repeat(14_000)}`] },
];

const MIB = 1_048_576;
const typed = (
  name: string,
  type: string,
  text: string | Uint8Array,
  encoding = '',
): HostileRequest => ({
  name,
  fields: [`content-type: ${type}`, ...(encoding === '' ? [] : [`content-encoding: ${encoding}`])],
  body: Buffer.from(text),
});
const JSON_TYPE = 'application/json';
const LINES_TYPE = 'application/x-ndjson';
const wide = `{${Array.from({ length: 200_000 }, (_, i) => `"k${i}":{}`).join(',')}}`;
const bomb = gzipSync(Buffer.alloc(64 * MIB, '{},'));

/** Bodies: deep, wide, with huge keys, packed, of another type. */
export const BODIES: readonly HostileRequest[] = [JSON_TYPE, LINES_TYPE]
  .flatMap((type) => [
    typed(`${type}: deep lists`, type, '['.repeat(2 * MIB)),
    typed(`${type}: deep objects`, type, '{"a":'.repeat(400_000)),
    typed(`${type}: many members`, type, wide),
    typed(`${type}: many items`, type, `{"items":[${'{},'.repeat(700_000)}{}]}`),
    typed(`${type}: a huge key`, type, `{"${'k'.repeat(2 * MIB)}":1}`),
    typed(`${type}: a huge number`, type, `{"a":${'1'.repeat(2 * MIB)}}`),
    typed(`${type}: many lines`, type, '{}\n'.repeat(500_000)),
    typed(`${type}: no UTF-8`, type, Buffer.alloc(100_000, 0xff)),
    typed(`${type}: zero bytes`, type, Buffer.alloc(2 * MIB)),
    typed(`${type}: null`, type, 'null'),
    typed(`${type}: prototypes`, type, '{"__proto__":{"a":1},"constructor":{"prototype":1}}'),
    typed(`${type}: a bomb`, type, bomb, 'gzip'),
    typed(`${type}: no gzip`, type, 'not packed', 'gzip'),
    typed(`${type}: another coding`, type, '{}', 'br'),
  ])
  .concat([
    typed('a form', 'application/x-www-form-urlencoded', filled('a=%5b&', MIB)),
    typed('parts', 'multipart/form-data; boundary=x', `--x\r\n${filled('a: b\r\n', MIB)}`),
    typed('text', 'text/plain', '{}'),
    typed('protobuf', 'application/proto', Buffer.alloc(MIB, 0x0a)),
    typed('no type', '', '{}'),
  ]);

/** Where it goes. */
export type RestTarget = {
  readonly url: URL;
  /** Listener, method and pattern. */
  readonly route: string;
  readonly method: string;
  readonly path: string;
  /** Fields of a caller who may. */
  readonly credential: readonly string[];
};

/** Sends it over HTTP/1.1; the status of the answer, 0 where there was none. A stream that begins is left at once. */
export function sendHostile(target: RestTarget, request: HostileRequest): Promise<number> {
  const { url, method, path, credential } = target;
  const { query = '', fields = [], body } = request;
  const own = fields.map((field) => field.slice(0, field.indexOf(':')).toLowerCase());
  const kept = credential.filter(
    (field) => !own.includes(field.slice(0, field.indexOf(':')).toLowerCase()),
  );
  const length = body === undefined ? [] : [`content-length: ${body.length}`];
  const lines = [
    `${method} ${path}${query === '' ? '' : `?${query}`} HTTP/1.1`,
    `host: ${url.host}`,
    'connection: close',
    ...kept,
    ...fields,
    ...length,
  ];
  return new Promise((resolve) => {
    const socket = net.connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
    let received = '';
    const finish = (): void => {
      const [, status = '0'] = /^HTTP\/1\.1 (\d{3})/.exec(received) ?? [];
      socket.destroy();
      resolve(Number(status));
    };
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1', 0, 64);
      if (/^HTTP\/1\.1 \d{3}/.test(received)) finish();
    });
    socket.on('error', finish).once('end', finish).once('close', finish);
    socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
    if (body !== undefined) socket.write(body);
  });
}
