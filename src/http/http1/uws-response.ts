import { SocketAddress } from 'node:net';
import { PieceGatherer } from '../bodies/piece-gatherer.ts';
import type { RawResponse } from '../exchange/raw-message.ts';
import type { UwsRawResponse } from './uws-binary.ts';

/**
 * Bytes of a piece. A head or part of an answer that the kernel does not take at once waits in pieces, each written when the
 * last has gone.
 */
const PIECE_BYTES = 16_384;
const NO_CONTENT = /^(?:204|304) /;
const CONNECTION = 'connection';
const EVENT_STREAM = 'text/event-stream';

/** The form of an answer, by its request. */
export type UwsAnswerForm = {
  readonly isHead: boolean;
  readonly hasBody: boolean;
  /** The body is in chunks, whose end uWebSockets.js may misread: nothing behind it is read. */
  readonly isCoded: boolean;
  /** uWebSockets.js closes the connection by itself, without a field that says so. */
  readonly isClosedByUws: boolean;
  readonly closes: boolean;
};

/** Settings that the answers of a listener share. */
export type UwsAnswers = {
  /** The value of the field Keep-Alive. */
  readonly kept: string;
  /** The whole field, to append to others. */
  readonly keptField: string;
  /** Limit on the rest of a request that is answered before it has come whole, and ends the connection. */
  readonly discardBytesMax: number;
};

/**
 * The answer to one request on uWebSockets.js. It joins the fields of a head into one call, and keeps what a stream writes
 * until the kernel takes it. It reads nothing behind a body in chunks. Hot.
 */
export class UwsResponse implements RawResponse {
  readonly #raw: UwsRawResponse;
  readonly #form: UwsAnswerForm;
  readonly #answers: UwsAnswers;
  #status = '';
  /** The name of the first field, and its value with all other fields behind it. */
  #name = '';
  #fields = '';
  #closes: boolean;
  #isKeptSaid = false;
  #isEventStream = false;
  #isHeadSent = false;
  #isBodyBegun = false;
  /** Whether reading of the connection has ended. */
  #isReadToEnd = false;
  /** The request has come whole. */
  #isRequestWhole: boolean;
  #isOver = false;
  #onWritable: ((offset: number) => boolean) | null = null;
  /** Bytes that a stream wrote and that are not passed to uWebSockets.js yet. */
  #waiting: PieceGatherer | null = null;
  #isEnding = false;
  /** An answer that waits for the end of its request. */
  #held: (() => void) | null = null;
  /** Parts of an answer that began before the bytes behind its request were parsed; null once they are. */
  #deferred: (() => void)[] | null = null;
  #pieces: PieceGatherer | null = null;
  /** Whether uWebSockets.js gathers what is written, as it does while it calls a handler of this request. */
  isCorked = false;

  constructor(raw: UwsRawResponse, form: UwsAnswerForm, answers: UwsAnswers) {
    this.#raw = raw;
    this.#form = form;
    this.#answers = answers;
    this.#closes = form.closes;
    this.#isRequestWhole = !form.hasBody;
    if (form.isCoded) this.#defer();
    // A handler may read no body, and answer after its end.
    if (form.isClosedByUws && form.hasBody) {
      raw.onData((_chunk, isLast) => {
        this.#isRequestWhole ||= isLast;
      });
    }
  }

  onAborted(handler: () => void): void {
    this.#raw.onAborted(() => {
      this.#isOver = true;
      this.#waiting?.clear();
      this.#held = null;
      this.#pieces?.clear();
      handler();
    });
  }

  onData(handler: (chunk: Uint8Array, isLast: boolean) => void): void {
    if (this.#form.isCoded) this.#gatherData(handler);
    else {
      this.#raw.onData((chunk, isLast) => {
        if (isLast) this.#isRequestWhole = true;
        this.isCorked = true;
        handler(new Uint8Array(chunk), isLast);
        this.isCorked = false;
      });
    }
  }

  onWritable(handler: (offset: number) => boolean): void {
    const isFirst = this.#onWritable === null;
    this.#onWritable = handler;
    if (isFirst && !this.#isOver) this.#raw.onWritable((offset) => this.#becameWritable(offset));
  }

  pause(): void {
    if (!this.#isOver) this.#raw.pause();
  }

  resume(): void {
    if (!this.#isOver && !this.#isReadToEnd) this.#raw.resume();
  }

  cork(handler: () => void): void {
    if (this.#isOver) return;
    if (this.#deferred !== null) this.#deferred.push(handler);
    else if (this.isCorked) handler();
    else this.#raw.cork(handler);
  }

  writeStatus(status: string): void {
    this.#status = status;
  }

  writeHeader(name: string, value: string): void {
    if (name === 'connection' && !this.#isHeadSent) {
      if (value === 'close') this.#closes = true;
      else this.#isKeptSaid = true;
      return;
    }
    if (name === 'content-type' && value === EVENT_STREAM) this.#isEventStream = true;
    if (this.#name !== '') this.#fields += `\r\n${name}: ${value}`;
    else {
      this.#name = name;
      this.#fields = value;
    }
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.#isOver) return true;
    if (!this.#isHeadSent) {
      this.#sendHead(this.#closes);
      // uWebSockets.js ends the head with the first bytes of the body.
      if (this.#isEventStream) setImmediate(() => this.#comment());
    }
    if (chunk.length === 0 || this.#form.isHead) return !this.#isWaiting;
    return this.#write(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  }

  end(body?: string | Uint8Array, closeConnection = false): void {
    if (this.#isOver) return;
    if (this.#isHeadSent) {
      if (body !== undefined) this.write(body);
      this.#isEnding = true;
      if (!this.#isWaiting) this.#endStream();
      return;
    }
    this.#closes ||= closeConnection;
    const hasNoContent = this.#status !== '' && NO_CONTENT.test(this.#status);
    if (this.#form.isHead || hasNoContent) {
      this.endWithoutBody(hasNoContent ? undefined : Buffer.byteLength(body ?? ''));
      return;
    }
    if (this.#form.isClosedByUws && !this.#isRequestWhole) {
      const whole = body instanceof Uint8Array ? Buffer.from(body) : body;
      return this.#endBehindRequest(() => this.#raw.end(whole));
    }
    this.#stopReading();
    // Closing on a client that still sends would reset it before it has read its answer: it closes by itself, or is idle.
    this.#sendHead(this.#form.isClosedByUws || (this.#closes && !this.#isRequestWhole));
    this.#isOver = true;
    this.#raw.end(body, this.#closes && this.#isRequestWhole);
  }

  endWithoutBody(contentLength?: number, closeConnection = false): void {
    if (this.#isOver) return;
    this.#closes ||= closeConnection;
    // A length passed as an argument leaves the answer pending in some builds, and a flag to close needs a length.
    if (contentLength !== undefined) this.writeHeader('content-length', String(contentLength));
    if (this.#form.isClosedByUws && !this.#isRequestWhole) {
      return this.#endBehindRequest(() => this.#raw.endWithoutBody());
    }
    this.#stopReading();
    this.#sendHead(this.#closes);
    this.#isOver = true;
    this.#raw.endWithoutBody();
  }

  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean] {
    if (this.#isOver) return [true, false];
    if (this.#form.isHead) {
      this.endWithoutBody(totalBytes);
      return [true, true];
    }
    if (!this.#isHeadSent) {
      this.#stopReading();
      this.#sendHead(this.#closes);
    }
    const [hasCapacity, isDone] = this.#raw.tryEnd(chunk, totalBytes);
    if (isDone) this.#isOver = true;
    return [hasCapacity, isDone];
  }

  close(): void {
    if (!this.#isOver) this.#raw.close();
  }

  getRemoteAddress(): string {
    if (this.#isOver) return '';
    const bytes = new Uint8Array(this.#raw.getRemoteAddress());
    if (bytes.length === 4) return bytes.join('.');
    if (bytes.length !== 16) return '';
    if (isMapped(bytes)) return bytes.subarray(12).join('.');
    const address = Buffer.from(bytes)
      .toString('hex')
      .replaceAll(/(.{4})(?!$)/g, '$1:');
    return new SocketAddress({ address, family: 'ipv6' }).address;
  }

  /** Answers a request that is refused for its form, and reads nothing behind it. */
  refuse(status: string, body: string): void {
    this.#isOver = true;
    this.#raw.writeStatus(status);
    this.#raw.writeHeader('content-type', 'application/json');
    // Whole heads and bodies leave at once where more than a buffer is written; the blanks are lost with the close.
    const rest = `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    this.#raw.writeHeader('connection', `close\r\n${rest}${HELD_BACK}`);
    this.#raw.close();
  }

  /** Sends the head. `saysClose` writes `connection: close`, where uWebSockets.js does not. */
  #sendHead(saysClose: boolean): void {
    this.#isHeadSent = true;
    if (this.#status !== '') this.#raw.writeStatus(this.#status);
    if (saysClose) this.writeHeader(CONNECTION, 'close');
    else if (!this.#closes) {
      if (this.#isKeptSaid) this.writeHeader(CONNECTION, 'keep-alive');
      if (this.#name === '') this.writeHeader('keep-alive', this.#answers.kept);
      else this.#fields += this.#answers.keptField;
    }
    // One call for all fields: a value is written as it is, and a call costs more than its bytes.
    if (this.#name !== '') this.#raw.writeHeader(this.#name, this.#fields);
  }

  /** Writes to uWebSockets.js as long as that passes all on to the kernel, and keeps the rest. */
  #write(bytes: Uint8Array): boolean {
    if (this.#isWaiting) {
      this.#waiting?.append(bytes);
      return false;
    }
    this.#isBodyBegun = true;
    const at = this.#writePieces(bytes);
    if (at === ALL_TAKEN) return true;
    if (at < bytes.byteLength) (this.#waiting ??= new PieceGatherer()).append(bytes.subarray(at));
    this.onWritable(this.#onWritable ?? keepWriting);
    return false;
  }

  get #isWaiting(): boolean {
    return this.#waiting !== null && this.#waiting.length > 0;
  }

  /** Returns how many bytes were written before the kernel took no more, or ALL_TAKEN. */
  #writePieces(bytes: Uint8Array): number {
    for (let at = 0; at < bytes.byteLength;) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      at += piece.byteLength;
      if (!this.#raw.write(piece)) return at;
    }
    return ALL_TAKEN;
  }

  /** Sends a head that no event has followed, by a comment. */
  #comment(): void {
    if (!this.#isOver && !this.#isBodyBegun) this.cork(() => void this.#write(COMMENT));
  }

  /**
   * Answers after the rest of the request. uWebSockets.js closes the connection with the answer, which would be lost on a
   * client that still sends.
   */
  #endBehindRequest(end: () => void): void {
    this.#isOver = true;
    this.#held = () => {
      this.#held = null;
      this.#raw.cork(() => {
        this.#sendHead(true);
        end();
      });
    };
    let left = this.#answers.discardBytesMax;
    this.#raw.onData((chunk, isLast) => {
      left -= chunk.byteLength;
      if (isLast || left < 0) this.#held?.();
    });
  }

  /**
   * Stops reading behind a body in chunks, or behind an answer that ends the connection before the request has come whole.
   */
  #stopReading(): void {
    if (!this.#form.isCoded && (this.#isRequestWhole || !this.#closes)) return;
    this.#isReadToEnd = true;
    this.#raw.pause();
  }

  #endStream(): void {
    this.#stopReading();
    this.#isOver = true;
    if (this.#form.isHead) this.#raw.endWithoutBody();
    // A flag to close would be written as a field in the midst of the chunks.
    else this.#raw.end();
  }

  #becameWritable(offset: number): boolean {
    // uWebSockets.js passes what it holds on to the kernel only at the end of a cork, or with the next write.
    this.#raw.cork(nothing);
    const waiting = this.#waiting;
    while (waiting !== null && waiting.length > 0) {
      const piece = waiting.consume(Math.min(PIECE_BYTES, waiting.length));
      if (!this.#raw.write(piece)) return false;
    }
    if (this.#isEnding) {
      this.#endStream();
      return true;
    }
    return this.#onWritable?.(offset) ?? true;
  }

  /**
   * Holds parts of the answer back until all that came with the request is parsed, and bytes behind it may have ended the
   * connection.
   */
  #defer(): void {
    this.#deferred = [];
    setImmediate(() => {
      const deferred = this.#deferred ?? [];
      this.#deferred = null;
      for (const part of deferred) this.cork(part);
    });
  }

  /** Passes on as one, after the turn, all chunks that came in it, of which there may be thousands. */
  #gatherData(handler: (chunk: Uint8Array, isLast: boolean) => void): void {
    const pieces = (this.#pieces = new PieceGatherer());
    let isScheduled = false;
    let isWhole = false;
    this.#raw.onData((chunk, isLast) => {
      pieces.append(new Uint8Array(chunk));
      isWhole ||= isLast;
      this.#isRequestWhole = isWhole;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(() => {
        isScheduled = false;
        if (!this.#isOver) handler(pieces.consume(pieces.length), isWhole);
      });
    });
  }
}

const COMMENT = Buffer.from(':\n\n');
const ALL_TAKEN = -1;
const HELD_BACK = ' '.repeat(PIECE_BYTES);

/** Whether an address is a mapped one, ::ffff:a.b.c.d (RFC 4291 §2.5.5.2). */
function isMapped(bytes: Uint8Array): boolean {
  return (
    bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  );
}

function nothing(): void {
  // The cork alone has an effect.
}

function keepWriting(): boolean {
  return true;
}
