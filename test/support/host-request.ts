import http2 from 'node:http2';
import { connect } from 'node:net';

/** Names that a page may have, or rebind, and that are none of a service on this machine. */
export const FOREIGN_HOSTS: readonly string[] = [
  'rebound.example',
  'rebound.example:PORT',
  'localhost.evil.test:PORT',
  '127.0.0.1.evil.test:PORT',
  'notlocalhost:PORT',
  'localhost-evil.test',
  '10.1.2.3:PORT',
  '0.0.0.0:PORT',
  '[2001:db8::1]:PORT',
  '127.1:PORT',
  'localhost:PORT, rebound.example',
  'localhost:PORT@rebound.example',
  'rebound.example#localhost',
  '[::1',
  'localhost..',
];
/** Names of this machine, on whatever port a forwarder has. */
export const OWN_HOSTS: readonly string[] = [
  'localhost',
  'localhost:PORT',
  'LocalHost.:PORT',
  'app.localhost:18080',
  '127.0.0.1:PORT',
  '127.8.9.1',
  '[::1]:PORT',
];

export type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/**
 * One request of HTTP/1.x on a connection of its own, the Host line as it is given; undefined sends none.
 * Status 0: closed without an answer. A body that does not end is read up to its first part.
 */
export function hostRequest(
  url: string,
  path: string,
  host: string | undefined,
  options: {
    readonly method?: string;
    readonly version?: '1.0' | '1.1';
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
  } = {},
): Promise<RawAnswer> {
  const { method = 'GET', version = '1.1', headers = {}, body = '' } = options;
  const { hostname, port } = new URL(url);
  const bytes = Buffer.from(body);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (host !== undefined) lines.unshift(`Host: ${host.replaceAll('PORT', port)}\r\n`);
  if (bytes.length > 0 || method === 'POST') lines.push(`Content-Length: ${bytes.length}\r\n`);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    const finish = (): void => resolve(answerOf(text));
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (isWhole(text, method === 'HEAD')) socket.destroy();
    });
    socket.on('close', finish);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.write(`${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n`);
    // Without a Host the server drops the request unheard, and waits for another one.
    if (host === undefined) socket.end(bytes);
    else socket.write(bytes);
  });
}

function isWhole(text: string, isHead: boolean): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0 || isHead) return end >= 0;
  const length = /^content-length: (\d+)/im.exec(text.slice(0, end))?.[1];
  return length === undefined || text.length >= end + 4 + Number(length);
}

function answerOf(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(/^HTTP\/1\.\d (\d{3})/.exec(statusLine)?.[1] ?? 0),
    headers: Object.fromEntries(headers),
    body: rest.join('\r\n\r\n'),
  };
}

export type StreamAnswer = RawAnswer & { readonly trailers: Readonly<Record<string, string>> };

/**
 * One stream of HTTP/2 on a connection of its own; `names` are `:authority`, `host`, both or none. Status 0:
 * it was reset without an answer.
 */
export async function hostStream(
  url: string,
  path: string,
  names: { readonly ':authority'?: string; readonly host?: string },
  options: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
  } = {},
): Promise<StreamAnswer> {
  const { port } = new URL(url);
  const named = Object.entries(names).map(([name, value]) => [name, value.replace('PORT', port)]);
  const session = http2.connect(url);
  try {
    const stream = session.request({
      ':method': options.method ?? 'POST',
      ':path': path,
      // With neither the client would fill one in.
      ...(named.length === 0 ? { ':authority': '' } : {}),
      ...(Object.fromEntries(named) as Record<string, string>),
      ...options.headers,
    });
    stream.end(options.body);
    const headers: Record<string, string> = {};
    const trailers: Record<string, string> = {};
    stream.on('response', (received) => take(received, headers));
    stream.on('trailers', (received) => take(received, trailers));
    const parts: Buffer[] = [];
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('error', () => undefined); // shows as status 0
    await new Promise((resolve) => stream.on('close', resolve));
    const body = Buffer.concat(parts).toString('latin1');
    return { status: Number(headers[':status'] ?? 0), headers, trailers, body };
  } finally {
    session.close();
  }
}

function take(received: http2.IncomingHttpHeaders, into: Record<string, string>): void {
  for (const [name, value] of Object.entries(received)) into[name] = String(value);
}
