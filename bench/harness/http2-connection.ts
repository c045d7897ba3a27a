import { connect, type Socket } from 'node:net';

/** What each stream of a connection asks: the same headers, and bodies in turn. */
export type Http2Questions = {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole bodies, envelopes included. */
  readonly bodies: readonly Uint8Array[];
  /** Whether an answer must end with trailers after data, as a good one of gRPC does. */
  readonly hasTrailers: boolean;
};

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 7, 8];
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1];
const FRAME_HEAD_BYTES = 9;
const FRAME_BYTES_MAX = 16_384;
const WINDOW_MAX = 2 ** 31 - 1;
const WINDOW_FIRST = 65_535;
const SETTING_BYTES = 6;
const [SETTING_STREAMS, SETTING_WINDOW] = [3, 4];
/** The first entry after HPACK's static table (RFC 7541 §2.3.3). */
const DYNAMIC_FIRST = 62;

type OpenStream = { readonly startedMs: number; hasData: boolean };

/**
 * One HTTP/2 connection of a load generator: frames written and read by hand, without a library between, so that the
 * generator takes little of the machine. Headers travel as clients send them: in full once, as indices of
 * the dynamic table then. The server's windows are kept; its answers are counted and not decoded.
 */
export class Http2Connection {
  readonly #socket: Socket;
  readonly #questions: Http2Questions;
  readonly #onAnswer: (startedMs: number) => void;
  readonly #onProblem: (problem: string) => void;
  readonly #streams = new Map<number, OpenStream>();
  readonly #firstBlock: Buffer;
  readonly #block: Buffer;
  #waiting: { readonly startedMs: number; readonly body: Uint8Array }[] = [];
  #out: Buffer[] = [];
  #in: Buffer = Buffer.alloc(0);
  #nextId = 1;
  #nextBody = 0;
  #window = WINDOW_FIRST;
  #owedWindow = 0;
  #isFlushing = false;
  /** Streams that the server lets be open at once. */
  #streamsMax = Infinity;

  constructor(
    port: number,
    questions: Http2Questions,
    onAnswer: (startedMs: number) => void,
    onProblem: (problem: string) => void,
  ) {
    this.#questions = questions;
    this.#onAnswer = onAnswer;
    this.#onProblem = onProblem;
    [this.#firstBlock, this.#block] = headerBlocks(questions, port);
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#socket.on('error', (error) => onProblem(error.message));
    const setting = Buffer.alloc(SETTING_BYTES);
    setting.writeUInt16BE(SETTING_WINDOW, 0);
    setting.writeUInt32BE(WINDOW_MAX, 2);
    this.#send(
      Buffer.from(PREFACE),
      frame(SETTINGS, 0, 0, setting),
      windowUpdate(WINDOW_MAX - WINDOW_FIRST),
    );
  }

  /** Streams that are open or wait for the server's window. */
  get openCount(): number {
    return this.#streams.size + this.#waiting.length;
  }

  /** Asks the next question; `startedMs` comes back with its answer. */
  ask(startedMs: number): void {
    const { bodies } = this.#questions;
    const body = bodies[this.#nextBody++ % bodies.length] as Uint8Array;
    this.#waiting.push({ startedMs, body });
    this.#openWaiting();
  }

  close(): void {
    this.#socket.destroy();
  }

  #openWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (next.body.length > this.#window || this.#streams.size >= this.#streamsMax) return;
      this.#waiting.shift();
      this.#open(next.startedMs, next.body);
    }
  }

  #open(startedMs: number, body: Uint8Array): void {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#window -= body.length;
    this.#streams.set(id, { startedMs, hasData: false });
    this.#send(frame(HEADERS, END_HEADERS, id, id === 1 ? this.#firstBlock : this.#block));
    for (let start = 0; start === 0 || start < body.length; start += FRAME_BYTES_MAX) {
      const part = body.subarray(start, start + FRAME_BYTES_MAX);
      const isLast = start + FRAME_BYTES_MAX >= body.length;
      this.#send(frame(DATA, isLast ? END_STREAM : 0, id, part));
    }
  }

  /** All that is sent in one turn of the loop leaves as one write. */
  #send(...parts: Buffer[]): void {
    this.#out.push(...parts);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      const out = this.#out;
      this.#out = [];
      this.#socket.write(Buffer.concat(out));
    });
  }

  #read(chunk: Buffer): void {
    let bytes = this.#in.length === 0 ? chunk : Buffer.concat([this.#in, chunk]);
    for (;;) {
      if (bytes.length < FRAME_HEAD_BYTES) break;
      const end = FRAME_HEAD_BYTES + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      this.#frame(bytes, end);
      bytes = bytes.subarray(end);
    }
    this.#in = bytes;
    if (this.#owedWindow > WINDOW_MAX / 2) {
      this.#send(windowUpdate(this.#owedWindow));
      this.#owedWindow = 0;
    }
  }

  #frame(bytes: Buffer, end: number): void {
    const type = bytes[3] as number;
    const flags = bytes[4] as number;
    const id = bytes.readUInt32BE(5);
    if (type === DATA || type === HEADERS) {
      const stream = this.#streams.get(id);
      if (type === DATA) this.#owedWindow += end - FRAME_HEAD_BYTES;
      if (stream === undefined) return;
      if (type === DATA && end > FRAME_HEAD_BYTES) stream.hasData = true;
      if ((flags & END_STREAM) === 0) return;
      this.#streams.delete(id);
      const isGood = stream.hasData && (type === HEADERS) === this.#questions.hasTrailers;
      if (isGood) this.#onAnswer(stream.startedMs);
      else this.#onProblem(`stream ${id} ended without a good answer`);
      this.#openWaiting();
    } else if (type === SETTINGS && (flags & ACK) === 0) {
      for (let at = FRAME_HEAD_BYTES; at < end; at += SETTING_BYTES) {
        if (bytes.readUInt16BE(at) === SETTING_STREAMS)
          this.#streamsMax = bytes.readUInt32BE(at + 2);
      }
      this.#send(frame(SETTINGS, ACK, 0));
    } else if (type === PING && (flags & ACK) === 0) {
      this.#send(frame(PING, ACK, 0, Buffer.from(bytes.subarray(FRAME_HEAD_BYTES, end))));
    } else if (type === WINDOW_UPDATE && id === 0) {
      this.#window += bytes.readUInt32BE(FRAME_HEAD_BYTES);
      this.#openWaiting();
    } else if (type === RST_STREAM) {
      this.#onProblem(`RST_STREAM of stream ${id}, code ${bytes.readUInt32BE(FRAME_HEAD_BYTES)}`);
    } else if (type === GOAWAY) {
      const code = bytes.readUInt32BE(FRAME_HEAD_BYTES + 4);
      const why = bytes.toString('latin1', FRAME_HEAD_BYTES + 8, end);
      this.#onProblem(`GOAWAY, code ${code} ${why}`);
    }
  }
}

function frame(type: number, flags: number, id: number, payload?: Uint8Array): Buffer {
  const length = payload?.length ?? 0;
  const bytes = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
  bytes.writeUIntBE(length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  if (payload !== undefined) bytes.set(payload, FRAME_HEAD_BYTES);
  return bytes;
}

function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(WINDOW_UPDATE, 0, 0, payload);
}

/** The header block of the first request, which fills the dynamic table, and that of all others. */
function headerBlocks({ path, headers }: Http2Questions, port: number): [Buffer, Buffer] {
  const fields: [string, string][] = [
    [':path', path],
    [':authority', `127.0.0.1:${port}`],
    ...Object.entries(headers),
  ];
  // `:method: POST` and `:scheme: http` are in the static table.
  const first: Buffer[] = [Buffer.from([0x83, 0x86])];
  const indices: number[] = [0x83, 0x86];
  for (const [i, [name, value]] of fields.entries()) {
    first.push(Buffer.from([0x40]), hpackText(name), hpackText(value));
    indices.push(0x80 | (DYNAMIC_FIRST + fields.length - 1 - i));
  }
  return [Buffer.concat(first), Buffer.from(indices)];
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 126) throw new Error(`${text}: longer than this generator encodes`);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
