import type net from 'node:net';
import type { HeaderFields } from './header-fields.ts';
import { HEADER_BYTES_MAX } from './http-limits.ts';
import { Http1Chunks } from './http1-chunks.ts';
import { HEAD_PARTIAL, HEAD_REFUSED, type Http1Head } from './http1-head.ts';
import { type Http1Answering, Http1Response } from './http1-response.ts';
import { Http1Writer } from './http1-writer.ts';
import type { RawResponse } from './raw-message.ts';
import { statusLine } from './response-head.ts';
import { descriptorOf } from './sniffing-listener.ts';
import type { SocketPeek } from './socket-peek.ts';

/** Ticks of the listener's clock. */
export type Http1Ticks = {
  readonly idle: number;
  readonly head: number;
  readonly body: number;
  readonly linger: number;
  readonly stall: number;
};

/** What connections share of their listener. */
export interface Http1Host {
  readonly head: Http1Head;
  readonly fields: HeaderFields;
  readonly peek: SocketPeek | null;
  /** Memory in which heads and short bodies are put together. */
  readonly scratch: Buffer;
  readonly ticks: Http1Ticks;
  readonly tick: number;
  readonly dateField: string;
  readonly keptField: string;
  readonly discardBytesMax: number;
  readonly isDraining: boolean;
  readonly take: (res: RawResponse, request: Http1Head) => void;
  /** Is there room to hold so many bytes more, which may be fewer than none? */
  holds(bytes: number): boolean;
  gone(connection: Http1Connection): void;
}

type ConnectionPhase =
  /** Nothing is asked. */
  | 'idle'
  /** A head has come in part. */
  | 'head'
  /** A request is taken, and its body or its answer not whole. */
  | 'busy'
  /** The last answer is given; what the client still sends is thrown away until it has read that. */
  | 'closing'
  | 'gone';

/** Requests of one piece that are taken in one turn of the event loop. */
const PIPELINED_PER_TURN = 16;
const LF = 10;
const NO_BODY = 0;
const SIZED = 1;
const CHUNKED = 2;
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const NOTHING = new Uint8Array(0);

/**
 * One connection of HTTP/1 (RFC 9112): cuts what comes into requests, one of which is answered at a time, and refuses what
 * is malformed wherever it comes. What is read is answered; while nothing is read, nothing is lost by closing. Hot.
 */
export class Http1Connection implements Http1Answering {
  readonly #socket: net.Socket;
  readonly #host: Http1Host;
  readonly #writer: Http1Writer;
  #phase: ConnectionPhase = 'idle';
  #deadlineTick: number;
  #sinceTick: number;
  #response: Http1Response | null = null;
  #body: typeof NO_BODY | typeof SIZED | typeof CHUNKED = NO_BODY;
  #bodyLeft = 0;
  #chunks: Http1Chunks | null = null;
  /** Came, and could not be taken yet: half a head, or requests behind one that is not answered. */
  #held: Buffer | null = null;
  #isParsing = false;
  #isReading = true;
  #isBodyPaused = false;
  #discardLeft = 0;

  constructor(socket: net.Socket, host: Http1Host) {
    this.#socket = socket;
    this.#host = host;
    this.#writer = new Http1Writer(socket, host, () => this.#response?.becameWritable());
    this.#sinceTick = host.tick;
    this.#deadlineTick = host.tick + host.ticks.head;
    socket.on('error', ignoreCloseError);
    socket.once('end', () => this.#ended());
    socket.once('close', () => this.drop());
  }

  /** Nothing is asked, and for how many ticks; -1 when something is. */
  get idleTicks(): number {
    return this.#phase === 'idle' ? this.#host.tick - this.#sinceTick : -1;
  }

  get isBusy(): boolean {
    return this.#phase === 'busy';
  }

  get isWritable(): boolean {
    return this.#writer.isDrained;
  }

  get dateField(): string {
    return this.#host.dateField;
  }

  get keptField(): string {
    return this.#host.keptField;
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  /** Takes `count` bytes that were read into `bytes`, which are the reader's again on return. */
  came(bytes: Buffer, count: number): void {
    if (this.#phase === 'gone') return;
    if (this.#held === null) {
      this.#consume(bytes, count);
      return;
    }
    const more = bytes.subarray(0, count);
    const all = Buffer.concat([this.#release(), more]);
    // A head that comes byte by byte is looked at line by line.
    if (this.#phase === 'head' && all.length < HEADER_BYTES_MAX && !more.includes(LF))
      this.#hold(all);
    else this.#consume(all, all.length);
  }

  /** Closes an idle connection, unless something has come that was not read yet. Returns whether it did. */
  closeIdle(): boolean {
    if (this.#phase !== 'idle' || this.#held !== null || this.#hasUnread()) return false;
    this.drop();
    return true;
  }

  /** Looks at what is overdue. */
  check(): void {
    if (!this.#writer.isDrained && this.#writer.isStalled()) this.drop();
    if (this.#phase === 'gone' || this.#host.tick <= this.#deadlineTick) return;
    if (this.#phase === 'idle') this.closeIdle();
    else if (this.#phase !== 'busy') this.drop();
    // What a handler takes as a whole has a deadline of its own, a stream that is paused has time.
    else if (this.#body !== NO_BODY && !this.#isBodyPaused) this.drop();
  }

  drop(): void {
    if (this.#phase === 'gone') return;
    this.#phase = 'gone';
    const response = this.#response;
    this.#response = null;
    if (this.#held !== null) this.#release();
    this.#socket.destroy();
    this.#host.gone(this);
    response?.aborted();
  }

  sendHead(head: string, body: string | Uint8Array | undefined): void {
    this.#writer.sendHead(head, body);
  }

  sendPart(bytes: Uint8Array): void {
    this.#writer.sendPart(bytes);
  }

  pauseBody(): void {
    this.#isBodyPaused = true;
    this.#pause();
  }

  resumeBody(): void {
    this.#isBodyPaused = false;
    this.#deadlineTick = this.#host.tick + this.#host.ticks.body;
    this.#readOn();
  }

  answered(response: Http1Response): void {
    this.#response = null;
    this.#isBodyPaused = false;
    this.#discardLeft = this.#host.discardBytesMax;
    const isTooMuch = this.#body === SIZED && this.#bodyLeft > this.#discardLeft;
    if (!response.isKept || isTooMuch) this.#close();
    else if (this.#body === NO_BODY) this.#rest();
    else this.#deadlineTick = this.#host.tick + this.#host.ticks.body;
    if (this.#isParsing || this.#phase === 'gone') return;
    if (this.#held !== null) setImmediate(() => this.#takeHeld());
    else this.#readOn();
  }

  /** Between two requests. */
  #rest(): void {
    this.#phase = 'idle';
    this.#sinceTick = this.#host.tick;
    this.#deadlineTick = this.#sinceTick + this.#host.ticks.idle;
  }

  /** The client sends no more: it has gone, unless it has its answer already, and reads on. */
  #ended(): void {
    if (this.#writer.isDrained || this.#response !== null) this.drop();
  }

  #takeHeld(): void {
    if (this.#held === null || this.#phase === 'gone' || this.#response !== null) return;
    const held = this.#release();
    this.#consume(held, held.length);
  }

  #consume(bytes: Buffer, to: number): void {
    this.#isParsing = true;
    let at = 0;
    let served = 0;
    while (at < to) {
      if (this.#phase === 'gone') break;
      if (this.#phase === 'closing') {
        this.#discard(to - at);
        break;
      }
      if (this.#body !== NO_BODY) {
        at = this.#takeBody(bytes, at, to);
        continue;
      }
      if (this.#response !== null || served === PIPELINED_PER_TURN) {
        this.#holdBack(bytes.subarray(at, to));
        break;
      }
      const end = this.#host.head.read(bytes, at, to);
      if (end === HEAD_PARTIAL) {
        this.#holdHead(bytes.subarray(at, to));
        break;
      }
      if (end === HEAD_REFUSED) {
        this.#refuse(this.#host.head.statusCode, this.#host.head.problem);
        continue;
      }
      at = end;
      served += 1;
      this.#begin(at < to);
    }
    this.#isParsing = false;
    this.#readOn();
  }

  #begin(isFollowed: boolean): void {
    const { head, fields } = this.#host;
    let problem = fields.read(head);
    const isHttp10 = head.minorVersion === 0;
    if (problem === '' && isHttp10 && fields.isChunked) problem = 'HTTP/1.0 has no chunks';
    this.#phase = 'busy';
    if (problem !== '') {
      this.#refuse(400, problem);
      return;
    }
    const method = head.getCaseSensitiveMethod();
    if (method === 'CONNECT') {
      this.#refuse(405, 'Method Not Allowed');
      return;
    }
    const { expectation, connection, contentLength } = fields;
    if (expectation !== '' && expectation !== '100-continue') {
      this.#refuse(417, 'Expect may be 100-continue alone');
      return;
    }
    this.#body = fields.isChunked ? CHUNKED : contentLength > 0 ? SIZED : NO_BODY;
    this.#bodyLeft = contentLength;
    const isKept = isHttp10
      ? hasOption(connection, 'keep-alive') && !hasOption(connection, 'close')
      : connection === '' || !hasOption(connection, 'close');
    const response = new Http1Response(this, { isHead: method === 'HEAD', isHttp10, isKept });
    this.#response = response;
    this.#deadlineTick = this.#host.tick + this.#host.ticks.body;
    this.#host.take(response, head);
    if (this.#response !== response) return;
    if (this.#body === NO_BODY) response.bodyCame(NOTHING, true);
    else if (expectation !== '' && !isHttp10 && !isFollowed && response.takesBody) {
      this.#writer.sendHead(CONTINUE, undefined);
    }
  }

  /** Returns where the bytes of the body end. */
  #takeBody(bytes: Buffer, from: number, to: number): number {
    let count: number;
    let end: number;
    if (this.#body === SIZED) {
      count = Math.min(to - from, this.#bodyLeft);
      end = from + count;
      this.#bodyLeft -= count;
      if (this.#bodyLeft === 0) this.#body = NO_BODY;
    } else {
      const chunks = (this.#chunks ??= new Http1Chunks());
      count = chunks.read(bytes, from, to);
      end = chunks.end;
      if (chunks.problem !== '') {
        this.#refuse(400, chunks.problem);
        return to;
      }
      if (chunks.isWhole) {
        this.#body = NO_BODY;
        this.#chunks = null;
      }
    }
    const isLast = this.#body === NO_BODY;
    const response = this.#response;
    if (response === null) this.#discardBody(end - from, isLast);
    else if (count > 0 || isLast) {
      this.#deadlineTick = this.#host.tick + this.#host.ticks.body;
      if (response.takesBody) response.bodyCame(bytes.subarray(from, from + count), isLast);
    }
    return end;
  }

  /** Of a request that is answered already. */
  #discardBody(count: number, isLast: boolean): void {
    if (isLast) this.#rest();
    else this.#discard(count);
  }

  #discard(count: number): void {
    this.#discardLeft -= count;
    if (this.#discardLeft < 0) this.drop();
  }

  /** Answers what is no request, and takes nothing that is behind it. */
  #refuse(statusCode: 400 | 405 | 417 | 431 | 505, problem: string): void {
    const response = this.#response;
    this.#response = null;
    if (response === null && this.#body !== NO_BODY) {
      // The request has its answer; another one would be taken for that of the next.
      this.#close();
      return;
    }
    if (response !== null) {
      response.aborted();
      if (response.hasBegun) {
        this.drop();
        return;
      }
    }
    const body = refusedMessageBody(problem);
    this.#writer.sendHead(
      `HTTP/1.1 ${statusLine(statusCode)}\r\ncontent-type: application/json\r\nconnection: close\r\n` +
        `${this.#host.dateField}content-length: ${Buffer.byteLength(body)}\r\n\r\n`,
      body,
    );
    this.#discardLeft = this.#host.discardBytesMax;
    this.#close();
  }

  /** Sends an end behind what was sent, and waits for the client to have read it: a reset would overtake the answer. */
  #close(): void {
    if (this.#phase === 'gone') return;
    this.#phase = 'closing';
    this.#body = NO_BODY;
    this.#deadlineTick = this.#host.tick + this.#host.ticks.linger;
    if (this.#held !== null) this.#release();
    this.#socket.end();
    this.#readOn();
  }

  #holdHead(part: Buffer): void {
    if (this.#phase === 'idle') this.#deadlineTick = this.#host.tick + this.#host.ticks.head;
    this.#phase = 'head';
    this.#hold(part);
  }

  /** No more is read until what is held is taken. */
  #holdBack(rest: Buffer): void {
    this.#pause();
    this.#hold(rest);
    if (this.#phase !== 'gone' && this.#response === null) setImmediate(() => this.#takeHeld());
  }

  #hold(part: Buffer): void {
    if (!this.#host.holds(part.length)) {
      this.drop();
      return;
    }
    this.#held = Buffer.from(part);
  }

  #release(): Buffer {
    const held = this.#held ?? Buffer.alloc(0);
    this.#held = null;
    this.#host.holds(-held.length);
    return held;
  }

  #readOn(): void {
    if (this.#isReading || this.#phase === 'gone' || this.#isBodyPaused) return;
    // The rest of half a head is still to come.
    if (this.#held !== null && this.#phase !== 'head') return;
    this.#isReading = true;
    this.#socket.resume();
  }

  #pause(): void {
    this.#isReading = false;
    this.#socket.pause();
  }

  #hasUnread(): boolean {
    const { peek, scratch } = this.#host;
    const fd = descriptorOf(this.#socket);
    return peek !== null && fd >= 0 && peek.peek(fd, scratch.subarray(0, 1)) > 0;
  }
}

/** Is `option` among those of Connection, which are in lower case? */
function hasOption(connection: string, option: string): boolean {
  return connection.split(',').some((one) => one.trim() === option);
}

function ignoreCloseError(): void {
  // The peer went away; 'close' follows.
}

/** The body of the answer to a message that is refused for its form. */
function refusedMessageBody(problem: string): string {
  return `{"code":"invalid_argument","message":${JSON.stringify(problem)},"details":[]}`;
}
