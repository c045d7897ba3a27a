// The lower bound of grpc-frames.ts, which starts it; yields nothing by itself.
import { type AddressInfo, createServer, type Socket } from 'node:net';

/**
 * HTTP/2 by hand, as little of it as answers unary calls of gRPC: frames are cut, settings and pings acknowledged, the
 * connection's window kept open, and each stream that ends gets a head, five bytes of envelope, the two of an allow, and
 * trailers, as bytes made beforehand; all answers of a read leave as one write. Header blocks are not decoded, bounds are not
 * kept and windows of streams not looked at, so it is no server: it tells what one could save at most.
 */
const PREFACE_BYTES = 24;
const HEAD_BYTES = 9;
const [DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE] = [0, 1, 4, 6, 8];
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1];
const WINDOW_MAX = 2 ** 31 - 1;
const WINDOW_FIRST = 65_535;
/** Room for the answers of one read: a request takes more bytes than its answer. */
const OUT_BYTES = 1 << 20;

function frame(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(WINDOW_UPDATE, 0, 0, payload);
}

const text = (value: string): Buffer =>
  Buffer.concat([Uint8Array.of(value.length), Buffer.from(value)]);
// `:status: 200` and the name content-type are in HPACK's static table; nothing enters the dynamic one.
const head = Buffer.concat([Uint8Array.of(0x88, 0x0f, 0x10), text('application/grpc+proto')]);
const trailers = Buffer.concat([Uint8Array.of(0x00), text('grpc-status'), text('0')]);
const parts = [
  frame(HEADERS, END_HEADERS, 0, head),
  frame(DATA, 0, 0, Uint8Array.of(0, 0, 0, 0, 2, 8, 1)),
  frame(HEADERS, END_HEADERS | END_STREAM, 0, trailers),
];
const answer = Buffer.concat(parts);
const [afterHead, afterData] = [parts[0], parts[1]].map((part) => part?.length ?? 0);
const idPlaces = [5, (afterHead ?? 0) + 5, (afterHead ?? 0) + (afterData ?? 0) + 5];

const server = createServer({ noDelay: true }, serve);
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});

function serve(socket: Socket): void {
  let rest: Buffer = Buffer.alloc(0);
  let skip = PREFACE_BYTES;
  let owed = 0;
  socket.write(
    Buffer.concat([
      frame(SETTINGS, 0, 0, Buffer.alloc(0)),
      windowUpdate(WINDOW_MAX - WINDOW_FIRST),
    ]),
  );
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const out = Buffer.allocUnsafe(OUT_BYTES);
    let to = 0;
    let at = 0;
    if (skip > 0) {
      at = Math.min(skip, bytes.length);
      skip -= at;
    }
    while (at + HEAD_BYTES <= bytes.length) {
      const length = bytes.readUIntBE(at, 3);
      const end = at + HEAD_BYTES + length;
      if (end > bytes.length) break;
      const type = bytes[at + 3];
      const flags = bytes[at + 4] as number;
      if (type === DATA) owed += length;
      if (type === DATA || type === HEADERS) {
        if ((flags & END_STREAM) !== 0) {
          out.set(answer, to);
          for (const place of idPlaces) out.set(bytes.subarray(at + 5, at + 9), to + place);
          to += answer.length;
        }
      } else if ((type === SETTINGS || type === PING) && (flags & ACK) === 0) {
        const kept = type === PING ? bytes.subarray(at + HEAD_BYTES, end) : Buffer.alloc(0);
        const reply = frame(type, ACK, 0, kept);
        out.set(reply, to);
        to += reply.length;
      }
      at = end;
    }
    rest = Buffer.from(bytes.subarray(at));
    if (owed > WINDOW_MAX / 2) {
      socket.write(windowUpdate(owed));
      owed = 0;
    }
    if (to > 0) socket.write(out.subarray(0, to));
  });
}
