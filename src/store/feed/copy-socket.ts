import type { Connection } from 'pg';

type OnData = (chunk: Buffer) => void;

/** Code of a CopyData message. */
const COPY_DATA = 0x64;
/** Its code and its length. */
const HEADER_BYTES = 5;
const NOTHING: Buffer = Buffer.alloc(0);

/** Consumer of the contents of CopyData messages. */
type CopyTaker = {
  /** The content of one message: [start, end) of `bytes`, valid during the call. Returns whether to continue; else `resume` does. */
  readonly message: (bytes: Buffer, start: number, end: number) => boolean;
  /** The bytes given so far will not be there any more. */
  readonly flush: () => void;
};
// Both may call `stop`: nothing is read afterwards.

/**
 * Reads the rows of a COPY from the socket of a connection, instead of the driver, which makes
 * objects and an event of each message: twice the time of cutting rows. The driver has the
 * beginning and the end: it reads the first chunk, and whatever is no CopyData message, and never
 * sees a message twice or half of one.
 *
 * I1 While the socket is adopted, the bytes kept from the driver begin where the last message that
 *    it was given ended: that one was a CopyData message (`seen`), and was in the chunk that has
 *    just been read. [copy-socket.pg.test.ts]
 * I2 It goes back at the border of two messages, after the driver was given the rest of the one
 *    that it had the beginning of. [copy-socket.pg.test.ts]
 */
export class CopySocket {
  readonly #stream: Connection['stream'];
  readonly #taker: CopyTaker;
  /** The driver's listeners while the socket is adopted. */
  #driver: OnData[] = [];
  #seen: Buffer | undefined;
  /** The driver has these bytes, the beginning of a message; behind them what it lacks of it. */
  #begun = 0;
  #missing: Buffer = NOTHING;
  /** Bytes that were received and not yet read. */
  #left: Buffer = NOTHING;
  #state: 'watching' | 'taken' | 'held' | 'over' = 'watching';
  /** The driver is being given the end of a message whose content the taker has had. */
  isRepeating = false;

  /** Watches from the first answer on. */
  constructor(connection: Connection, taker: CopyTaker) {
    this.#stream = connection.stream;
    this.#taker = taker;
    this.#stream.on('data', this.#onData);
  }

  /** The driver has read a CopyData message with this content. */
  seen(chunk: Buffer): void {
    this.#seen = chunk;
  }

  /** Continues after `message` returned false. */
  resume(): void {
    if (this.#isHeld) {
      this.#state = 'taken';
      const left = this.#left;
      this.#left = NOTHING;
      this.#read(left);
    }
    if (!this.#isHeld) this.#stream.resume();
  }

  get #isHeld(): boolean {
    return this.#state === 'held';
  }

  /** No more bytes are wanted: the connection ends, or has been released. */
  stop(): void {
    this.#stream.off('data', this.#onData);
    for (const listener of this.#driver) this.#stream.on('data', listener);
    this.#driver = [];
    this.#state = 'over';
  }

  readonly #onData = (chunk: Buffer): void => {
    switch (this.#state) {
      case 'watching':
        this.#adopt(chunk);
        break;
      case 'taken':
        this.#read(this.#left.length === 0 ? chunk : Buffer.concat([this.#left, chunk]));
        break;
      case 'held':
        this.#left = Buffer.concat([this.#left, chunk]);
        break;
      case 'over':
        break;
    }
  };

  /** Called behind the driver, which has read all whole messages of the chunk. */
  #adopt(chunk: Buffer): void {
    const seen = this.#seen;
    this.#seen = undefined;
    if (seen === undefined || seen.buffer !== chunk.buffer) return;
    const at = seen.byteOffset + seen.length - chunk.byteOffset;
    if (seen.byteOffset < chunk.byteOffset || at > chunk.length) return;
    // Another message behind it: the driver continues.
    if (at < chunk.length && chunk[at] !== COPY_DATA) return;
    this.#driver = (this.#stream.listeners('data') as OnData[]).filter(
      (listener) => listener !== this.#onData,
    );
    for (const listener of this.#driver) this.#stream.off('data', listener);
    this.#left = Buffer.from(chunk.subarray(at));
    this.#begun = this.#left.length;
    this.#state = 'taken';
  }

  #read(bytes: Buffer): void {
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      if (bytes[at] !== COPY_DATA) {
        this.#taker.flush();
        if (this.#state === 'taken') this.#release(bytes.subarray(at));
        return;
      }
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (this.#begun > 0) {
        this.#missing = Buffer.from(bytes.subarray(this.#begun, end));
        this.#begun = 0;
      }
      const isGoingOn = this.#taker.message(bytes, at + HEADER_BYTES, end);
      at = end;
      if (this.#state !== 'taken') return;
      if (!isGoingOn) {
        this.#hold(bytes.subarray(at));
        return;
      }
    }
    this.#taker.flush();
    this.#left = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
  }

  #hold(left: Buffer): void {
    this.#state = 'held';
    this.#left = left;
    this.#stream.pause();
    this.#taker.flush();
  }

  #release(rest: Buffer): void {
    const driver = this.#driver;
    const missing = this.#missing;
    this.#left = NOTHING;
    this.stop();
    if (missing.length > 0) {
      this.isRepeating = true;
      for (const listener of driver) listener(missing);
      this.isRepeating = false;
    }
    for (const listener of driver) listener(rest);
  }
}
