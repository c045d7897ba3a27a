import net from 'node:net';

/* Frames of HTTP/2 byte by byte, to send what no client would. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const PADDED = 8;
export const PRIORITIZED = 0x20;

export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array = Buffer.alloc(0),
  length = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function settings(...pairs: readonly (readonly [name: number, value: number])[]): Buffer {
  const payload = pairs.map(([name, value]) => {
    const bytes = Buffer.alloc(6);
    bytes.writeUInt16BE(name, 0);
    bytes.writeUInt32BE(value, 2);
    return bytes;
  });
  return frame(TYPE.settings, 0, 0, Buffer.concat(payload));
}

/** A header block of literals that no table takes up. */
export function block(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, 'latin1');
    return Buffer.concat([integer(bytes.length), bytes]);
  };
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

function integer(value: number): Buffer {
  if (value < 0x7f) return Buffer.from([value]);
  const bytes = [0x7f];
  for (let rest = value - 0x7f; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 0x80);
  }
}

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
};

/** A connection that cuts what it receives into frames. */
export class RawHttp2 {
  readonly socket: net.Socket;
  readonly frames: Frame[] = [];
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.socket = net.connect({ port, host: '127.0.0.1' });
    this.socket.setNoDelay(true);
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.isClosed = true;
    });
    this.socket.on('data', (chunk: Buffer) => this.#cut(chunk));
  }

  /** Frames of a type, of a stream where one is given. */
  of(type: number, id?: number): Frame[] {
    return this.frames.filter((one) => one.type === type && (id === undefined || one.id === id));
  }

  /** The code of the GOAWAY that ended the connection. */
  get goawayCode(): number | undefined {
    return this.of(TYPE.goaway).at(-1)?.payload.readUInt32BE(4);
  }

  resetCode(id: number): number | undefined {
    return this.of(TYPE.rstStream, id).at(-1)?.payload.readUInt32BE(0);
  }

  isAnswered(id: number): boolean {
    const frames = this.frames.filter((one) => one.id === id && one.type <= TYPE.headers);
    return frames.some(({ flags }) => (flags & END_STREAM) !== 0);
  }

  #cut(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3);
      this.frames.push({
        type: bytes[3] as number,
        flags: bytes[4] as number,
        id: bytes.readUInt32BE(5),
        payload: bytes.subarray(9, end),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
  }
}
