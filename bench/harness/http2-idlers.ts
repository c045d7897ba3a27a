// Connections that fill an HPACK table and then rest, in a process of their own; yields nothing by itself.
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { END_HEADERS, END_STREAM, frame, PREFACE, TYPE } from '../../test/support/raw-http2.ts';

/** What the benchmark asks of this process: to have so many connections, all told. */
export type IdlersJob = {
  readonly port: number;
  readonly count: number;
  readonly shape: IdlersShape;
};
/** All of them have had their answers. */
export type IdlersReady = { readonly open: number; readonly problem: string | undefined };

/** Each has one request under way. More are not answered sooner: they wait for each other, and the bystander for them. */
const AT_ONCE = 4;
/** The service closes a connection that says nothing for 120 s. */
const PING_MS = 60_000;
const PING_SHARES = 200;
const FRAME_HEAD_BYTES = 9;
const ACK = 1;
const PING_BYTES = 8;
const PING_FRAME = frame(TYPE.ping, 0, 0, Buffer.alloc(PING_BYTES));
const SETTINGS_ACK = frame(TYPE.settings, ACK, 0);
const GREETING = Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0), PING_FRAME]);

const PSEUDO = Buffer.concat([
  Buffer.from([0x83, 0x86]),
  literal(0x01, 'localhost'),
  literal(0x04, '/workspace.v1.AuthzService/Check'),
  literal(0x0f, 'application/json', 0x10),
]);
/** Fields of 36 bytes, as the table counts them: it holds 113. */
const SMALL_FIELDS = 113;
/** Longer than half of the table: each evicts the one before. */
const LARGE_BYTES = 4_000;
const LARGE_FIELDS = 3;
/** Static names whose values a decoder may remember: `referer`, `user-agent`, `from` and others. */
const NAMED = [19, 22, 24, 27, 29, 35, 36, 51, 52, 58];
const NAMED_BYTES = 200;
const ROUNDS = 4;
const LARGE_REQUESTS = 5;
const idlers = new Set<Idler>();

/** What each connection sends, in order: by the size of what ends up in the table. */
const SHAPES = {
  small: shapeOf(true, false),
  large: shapeOf(false, true),
  both: shapeOf(true, true),
};
export type IdlersShape = keyof typeof SHAPES;

function shapeOf(hasSmall: boolean, hasLarge: boolean): readonly Buffer[] {
  const requests: Buffer[] = [];
  const add = (fields: readonly Buffer[]): void => {
    const payload = Buffer.concat([PSEUDO, ...fields]);
    const id = requests.length * 2 + 1;
    requests.push(
      Buffer.concat([frame(TYPE.headers, END_HEADERS | END_STREAM, id, payload), PING_FRAME]),
    );
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; hasLarge && i < LARGE_REQUESTS; i++) {
      const seed = round * 100 + i * 10;
      add(times(LARGE_FIELDS, (n) => indexed('x', letters(seed + n, LARGE_BYTES))));
    }
    if (hasSmall)
      add(times(SMALL_FIELDS, (n) => indexed(`x${letters(n + round * 200, 2)}`, letters(n, 1))));
  }
  add(NAMED.map((index) => literal(0x0f, letters(index, NAMED_BYTES), index - 15)));
  return requests;
}

function times(count: number, make: (i: number) => Buffer): Buffer[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function letters(i: number, length: number): string {
  let out = '';
  for (let rest = i; out.length < length; rest = Math.floor(rest / 26)) {
    out += String.fromCharCode(97 + (rest % 26));
  }
  return out;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const head = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) head.push((rest % 128) | 0x80);
  return Buffer.concat([Buffer.from([...head, rest]), bytes]);
}

/** A field that the table takes up. */
function indexed(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/** A field that no table takes up, whose static name has the index `first`, or 15 and `more` behind it. */
function literal(first: number, value: string, more?: number): Buffer {
  return Buffer.concat([Buffer.from(more === undefined ? [first] : [first, more]), text(value)]);
}

/** One connection: it sends something, and waits for the answer. */
class Idler {
  readonly #socket: Socket;
  #held: Buffer = Buffer.alloc(0);
  #onAnswer: (() => void) | null = null;
  #onError: ((error: Error) => void) | null = null;

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#came(chunk));
    this.#socket.on('error', (error) => this.#onError?.(error));
    this.#socket.on('close', () => {
      idlers.delete(this);
      this.#onError?.(new Error('the service closed a connection'));
    });
    idlers.add(this);
  }

  /** Sends a request, or the greeting with a PING; settles when it was answered. */
  send(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onAnswer = resolve;
      this.#onError = reject;
      this.#socket.write(bytes);
    });
  }

  ping(): void {
    this.#socket.write(PING_FRAME);
  }

  #came(chunk: Buffer): void {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let at = 0;
    while (at + FRAME_HEAD_BYTES <= bytes.length) {
      const end = at + FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      this.#frame(bytes[at + 3] as number, bytes[at + 4] as number);
      at = end;
    }
    this.#held = Buffer.from(bytes.subarray(at));
  }

  #frame(type: number, flags: number): void {
    if (type === TYPE.settings && (flags & ACK) === 0) this.#socket.write(SETTINGS_ACK);
    const isAnswer =
      type === TYPE.ping ||
      ((type === TYPE.data || type === TYPE.headers) && (flags & END_STREAM) !== 0);
    if (type === TYPE.rstStream) this.#onError?.(new Error('the service reset a stream'));
    else if (isAnswer) {
      this.#onAnswer?.();
      this.#onAnswer = null;
    }
  }
}

/** All new ones are opened; then each request is sent by all of them before the next is. */
async function openUntil({ port, count, shape }: IdlersJob): Promise<IdlersReady> {
  const fresh: Idler[] = [];
  try {
    await inTurns(count - idlers.size, (i) => {
      const idler = new Idler(port);
      fresh[i] = idler;
      return idler.send(GREETING);
    });
    for (const request of SHAPES[shape]) {
      await inTurns(fresh.length, (i) => (fresh[i] as Idler).send(request));
    }
  } catch (error) {
    return { open: idlers.size, problem: (error as Error).message };
  }
  return { open: idlers.size, problem: undefined };
}

/** `AT_ONCE` of them at a time. */
async function inTurns(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** A share of them at a time: all at once would be a burst. */
let share = 0;
setInterval(() => {
  let i = 0;
  for (const idler of idlers) if (i++ % PING_SHARES === share) idler.ping();
  share = (share + 1) % PING_SHARES;
}, PING_MS / PING_SHARES).unref();

/** Clients have machines of their own: these take what the service and the bystander leave of this one. */
setPriority(constants.priority.PRIORITY_LOW);
process.on('message', (job: IdlersJob) => {
  void openUntil(job).then((ready) => process.send?.(ready));
});
process.on('disconnect', () => process.exit());
