import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  RawHttp2,
  settings,
  TYPE,
} from '../support/raw-http2.ts';

/* Clients that send bodies in crumbs, or all of a body but its end. They keep to what windows allow. */

const WINDOW_FIRST = 65_535;
const STREAM_WINDOW = 1_048_576;
const FRAME_BYTES = 16_384;
/** Given to the socket at once. */
const BATCH_BYTES = 65_536;
/** No window has opened for so long: the service takes no more. */
const STUCK_MS = 3_000;

export type UnfinishedOptions = {
  readonly port: number;
  readonly token: string;
  readonly path: string;
  readonly contentType: string;
  readonly streams: number;
  /** Of each body, whose end never comes. */
  readonly bytes: number;
  /** Of each DATA frame. */
  readonly pieceBytes: number;
};

/** How the bodies of one connection fared. */
export type Unfinished = {
  readonly client: RawHttp2;
  /** Of bodies, all streams together. */
  readonly sentBytes: number;
  /** Streams that were answered or reset. */
  readonly endedCount: number;
};

/** Opens streams on one connection, and sends a part of each in turn until none takes more. */
export async function sendUnfinished(options: UnfinishedOptions): Promise<Unfinished> {
  const client = new RawHttp2(options.port);
  client.socket.write(Buffer.concat([PREFACE, settings()]));
  const streams = new Map<number, { window: number; left: number }>();
  for (let i = 0; i < options.streams; i++) {
    const id = 2 * i + 1;
    streams.set(id, { window: STREAM_WINDOW, left: options.bytes });
    client.socket.write(frame(TYPE.headers, END_HEADERS, id, headOf(options)));
  }
  let window = WINDOW_FIRST;
  let seen = 0;
  let sentBytes = 0;
  let sinceMs = performance.now();
  const look = (): void => {
    for (; seen < client.frames.length; seen++) {
      const { type, id, payload, flags } = client.frames[seen] as RawHttp2['frames'][number];
      if (type === TYPE.windowUpdate && id === 0) window += payload.readUInt32BE(0);
      const stream = streams.get(id);
      if (stream === undefined) continue;
      if (type === TYPE.windowUpdate) stream.window += payload.readUInt32BE(0);
      const isEnd = type === TYPE.rstStream || (flags & END_STREAM) !== 0;
      if (isEnd && type !== TYPE.windowUpdate) streams.delete(id);
    }
  };
  while (!client.isClosed && performance.now() - sinceMs < STUCK_MS) {
    look();
    if ([...streams.values()].every(({ left }) => left === 0)) break;
    let isSent = false;
    for (const [id, stream] of streams) {
      const bytes = Math.min(BATCH_BYTES, stream.left, stream.window, window);
      if (bytes < Math.min(options.pieceBytes, stream.left) || bytes === 0) continue;
      const whole = stream.left === bytes ? bytes : bytes - (bytes % options.pieceBytes);
      stream.left -= whole;
      stream.window -= whole;
      window -= whole;
      sentBytes += whole;
      isSent = true;
      const isTaken = client.socket.write(framesOf(id, whole, options.pieceBytes));
      if (!isTaken && !client.isClosed) {
        await drained(client.socket);
      }
      look();
    }
    if (isSent) sinceMs = performance.now();
    else await sleep(2);
  }
  await sleep(200);
  look();
  return { client, sentBytes, endedCount: options.streams - streams.size };
}

/** Until there is room again, or the connection has gone. */
async function drained(socket: net.Socket): Promise<void> {
  const isOver = new AbortController();
  const { signal } = isOver;
  const gone = once(socket, 'close', { signal });
  // An error of the connection comes before its close.
  await Promise.race([once(socket, 'drain', { signal }), gone]).catch(() => undefined);
  isOver.abort();
  await gone.catch(() => undefined);
}

function headOf({ path, token, contentType }: UnfinishedOptions): Buffer {
  return block([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'localhost'],
    [':path', path],
    ['content-type', contentType],
    ...(contentType.startsWith('application/grpc') ? ([['te', 'trailers']] as const) : []),
    ['authorization', `Bearer ${token}`],
  ]);
}

const spaces = Buffer.alloc(FRAME_BYTES, 0x20);

function framesOf(id: number, bytes: number, pieceBytes: number): Buffer {
  const one = frame(TYPE.data, 0, id, spaces.subarray(0, pieceBytes));
  const count = Math.floor(bytes / pieceBytes);
  const rest = bytes % pieceBytes;
  const all = Buffer.alloc(one.length * count + (rest === 0 ? 0 : rest + 9));
  for (let i = 0; i < count; i++) one.copy(all, i * one.length);
  if (rest > 0) frame(TYPE.data, 0, id, spaces.subarray(0, rest)).copy(all, one.length * count);
  return all;
}

export type CrumbOptions = {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  readonly chunks: number;
};

/** A chunked body of one byte a chunk over HTTP/1.1, without its end; what was answered so far. */
export async function sendChunkedCrumbs(
  options: CrumbOptions,
): Promise<{ readonly socket: net.Socket; readonly received: () => string }> {
  const socket = net.connect({ port: options.port, host: '127.0.0.1' });
  let received = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(
    `POST ${options.path} HTTP/1.1\r\nhost: 127.0.0.1:${options.port}\r\ncontent-type: application/json\r\n` +
      `authorization: Bearer ${options.token}\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  const batch = Buffer.from('1\r\n \r\n'.repeat(8_192));
  for (let sent = 0; sent < options.chunks && !isClosed; sent += 8_192) {
    if (socket.write(batch)) await sleep(0);
    else await drained(socket);
  }
  await sleep(200);
  return { socket, received: () => received };
}

/** A body of a declared length over HTTP/1.1 without its last byte. */
export async function sendHeldBody(
  options: Omit<CrumbOptions, 'chunks'> & { readonly bytes: number },
): Promise<{ readonly socket: net.Socket; readonly received: () => string }> {
  const socket = net.connect({ port: options.port, host: '127.0.0.1' });
  let received = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(
    `POST ${options.path} HTTP/1.1\r\nhost: 127.0.0.1:${options.port}\r\ncontent-type: application/json\r\n` +
      `authorization: Bearer ${options.token}\r\ncontent-length: ${options.bytes}\r\n\r\n`,
  );
  for (let left = options.bytes - 1; left > 0 && !isClosed; left -= FRAME_BYTES) {
    if (!socket.write(spaces.subarray(0, Math.min(left, FRAME_BYTES)))) {
      await drained(socket);
    }
  }
  return { socket, received: () => received };
}
