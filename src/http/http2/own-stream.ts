import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http2';
import { ENHANCE_YOUR_CALM, FRAME_BYTES_MAX, NO_ERROR } from './frames/protocol.ts';
import type { Http2RequestStream } from './request-stream.ts';

/** The connection as a stream needs it to send its answer. */
export interface StreamSender {
  /** Bytes that the peer takes on the whole connection. */
  sendWindow: number;
  /** Whether data may be given to the socket now. */
  readonly canSend: boolean;
  sendHead(stream: OwnStream, head: OutgoingHttpHeaders, isTrailer: boolean, isLast: boolean): void;
  sendData(stream: OwnStream, data: Uint8Array, isLast: boolean): void;
  /** Continues the stream when the connection takes more. */
  await(stream: OwnStream): void;
}

/** Bytes of a body that wait for its reader. */
export interface UnreadBytes {
  readonly length: number;
  /** Copies the chunk. Returns false if it does not fit. */
  add(chunk: Uint8Array): boolean;
  /** Takes the oldest contiguous bytes; empty where nothing is held. */
  shift(): Uint8Array;
  /** Counts against another owner. Returns false if the bytes exceed its share. */
  moveTo(owner: string): boolean;
  /** Drops all. Idempotent. */
  release(): void;
}

/** The stream's port to its connection. */
export interface StreamCarrier {
  readonly sender: StreamSender;
  /** Counts bytes of answers that wait; below 0: that wait no longer. */
  queued(bytes: number): void;
  /** Counts bytes of the body that the reader has taken. */
  consumed(stream: OwnStream, bytes: number): void;
  /** Counts bytes that no reader has taken; below 0: that one has. */
  unread(bytes: number): void;
  /** Makes the buffer for bytes that wait, counted against `owner`. */
  newUnread(owner: string): UnreadBytes;
  /** Called when data of an answer waits for windows, or for the socket. */
  waits(): void;
  /** Called when the answer is complete. */
  answered(stream: OwnStream): void;
  reset(stream: OwnStream, code: number): void;
}

/** Bytes of an answer up to which it is written on without a pause. */
const HIGH_WATER_BYTES = 16_384;
const NO_BYTES = new Uint8Array();
/** Statuses whose answers have no body, whatever is written. */
const BODILESS = new Set([204, 205, 304]);

/**
 * A request over HTTP/2 on framing of our own. Its connection keeps windows and states, and handles all that the peer may do
 * wrong. The stream passes the body on to a reader, and the answer to the windows. 'close' comes once the answer is with the
 * kernel.
 */
export class OwnStream extends EventEmitter implements Http2RequestStream {
  readonly id: number;
  /** Bytes that the peer takes; below 0 where it has shrunk its windows. */
  sendWindow: number;
  /** Bytes that the peer may send. */
  receiveWindow: number;
  /** Bytes taken by the reader, and not released to the peer's window yet. */
  owedBytes = 0;
  /** Length of the body as its head states it (-1: not stated), the bytes that have come, and their number of frames. */
  readonly contentLength: number;
  receivedBytes = 0;
  frameCount = 0;
  /** Bytes of the answer's data that have left. */
  sentBytes = 0;
  /** State of the stall watch: `sentBytes` at its last sweep, and sweeps since then that found no more. */
  sentBytesSeen = -1;
  idleSweeps = 0;
  /** The peer has ended the request. */
  isRemoteEnded = false;
  /** We have ended the answer. */
  isLocalEnded = false;
  destroyed = false;
  readableEnded = false;
  readonly #carrier: StreamCarrier;
  readonly #sender: StreamSender;
  #isHeadOnly: boolean;
  #isFlowing = false;
  #isDraining = false;
  #bodyOwner = '';
  #incoming: UnreadBytes | null = null;
  #outgoing: Uint8Array[] | null = null;
  /** Bytes of the first outgoing chunk that were sent. */
  #sentOfFirst = 0;
  #outgoingBytes = 0;
  #isHeadSent = false;
  #isEnding = false;
  #isDrainAwaited = false;
  #isTrailed = false;
  #areTrailersAsked = false;

  constructor(
    carrier: StreamCarrier,
    id: number,
    contentLength: number,
    isHeadOnly: boolean,
    sendWindow: number,
    receiveWindow: number,
  ) {
    super();
    this.#carrier = carrier;
    this.#sender = carrier.sender;
    this.id = id;
    this.contentLength = contentLength;
    this.#isHeadOnly = isHeadOnly;
    this.sendWindow = sendWindow;
    this.receiveWindow = receiveWindow;
  }

  get writableFinished(): boolean {
    return this.isLocalEnded;
  }

  /** Whether data waits for windows. */
  get isWaiting(): boolean {
    return this.#outgoingBytes > 0;
  }

  respond(
    head: OutgoingHttpHeaders = {},
    options: { readonly endStream?: boolean; readonly waitForTrailers?: boolean } = {},
  ): void {
    if (this.destroyed) return;
    if (this.#isHeadSent) throw new Error('the head of the answer was sent before');
    this.#isHeadOnly ||= BODILESS.has(Number(head[':status'] ?? 200));
    const isLast = this.#isHeadOnly || options.endStream === true;
    this.#sender.sendHead(this, head, false, isLast);
    this.#isHeadSent = true;
    this.#isTrailed = options.waitForTrailers === true;
    if (isLast) this.#localEnded();
  }

  write(chunk: Uint8Array): boolean {
    if (this.destroyed || this.#isEnding || this.isLocalEnded) return true;
    this.#add(chunk);
    this.send(Number.POSITIVE_INFINITY);
    this.#isDrainAwaited = this.#outgoingBytes >= HIGH_WATER_BYTES;
    return !this.#isDrainAwaited;
  }

  end(chunk?: Uint8Array | string): void {
    if (this.destroyed || this.#isEnding || this.isLocalEnded) return;
    if (!this.#isHeadSent) this.respond();
    this.#isEnding = true;
    if (chunk !== undefined) this.#add(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
    this.send(Number.POSITIVE_INFINITY);
  }

  sendTrailers(trailers: OutgoingHttpHeaders): void {
    if (this.destroyed || this.isLocalEnded) return;
    let isEmpty = true;
    for (const name in trailers) isEmpty &&= trailers[name] === undefined;
    if (isEmpty) this.#sender.sendData(this, NO_BYTES, true);
    else this.#sender.sendHead(this, trailers, true, true);
    this.#localEnded();
  }

  close(code: number = NO_ERROR): void {
    if (!this.destroyed) this.#carrier.reset(this, code);
  }

  override on(event: string | symbol, listener: (...args: never[]) => void): this {
    super.on(event, listener as (...args: unknown[]) => void);
    if (event === 'data') this.resume();
    return this;
  }

  resume(): this {
    this.#isFlowing = true;
    const isOver = this.isRemoteEnded && !this.readableEnded;
    if ((this.#incoming !== null || isOver) && !this.#isDraining) {
      this.#isDraining = true;
      process.nextTick(drainIncoming, this);
    }
    return this;
  }

  pause(): this {
    this.#isFlowing = false;
    return this;
  }

  get bodyOwner(): string {
    return this.#bodyOwner;
  }

  set bodyOwner(owner: string) {
    this.#bodyOwner = owner;
    if (this.#incoming !== null && !this.#incoming.moveTo(owner)) this.close(ENHANCE_YOUR_CALM);
  }

  /** Hot. Takes data that has come; it shares the memory of all that was read with it. */
  dataCame(chunk: Uint8Array): void {
    if (this.#isFlowing && this.#incoming === null) {
      this.emit('data', chunk);
      this.#carrier.consumed(this, chunk.length);
      return;
    }
    this.#carrier.unread(chunk.length);
    this.#incoming ??= this.#carrier.newUnread(this.#bodyOwner);
    if (!this.#incoming.add(chunk)) this.close(ENHANCE_YOUR_CALM);
  }

  /** Hot. Takes the end of the request. */
  endCame(): void {
    this.isRemoteEnded = true;
    if (this.#isFlowing && this.#incoming === null) this.#ended();
  }

  /** Passes on what waits for the reader; called by `process.nextTick` after `resume`. */
  drain(): void {
    this.#isDraining = false;
    while (this.#isFlowing && this.#incoming !== null && !this.destroyed) {
      const chunk = this.#incoming.shift();
      if (this.#incoming.length === 0) {
        this.#incoming.release();
        this.#incoming = null;
      }
      this.#carrier.unread(-chunk.length);
      this.emit('data', chunk);
      this.#carrier.consumed(this, chunk.length);
    }
    if (this.#isFlowing && this.#incoming === null && this.isRemoteEnded && !this.destroyed) {
      this.#ended();
    }
  }

  /**
   * Hot. Sends what the windows allow, in `framesMax` frames at most. Asks to be called again where the connection is the
   * limit.
   */
  send(framesMax: number): void {
    const sender = this.#sender;
    for (let frames = 0; this.#outgoing !== null; frames++) {
      if (this.sendWindow <= 0) return this.#carrier.waits();
      if (frames >= framesMax || sender.sendWindow <= 0 || !sender.canSend) {
        sender.await(this);
        return this.#carrier.waits();
      }
      this.#sendFrame(Math.min(FRAME_BYTES_MAX, this.sendWindow, sender.sendWindow));
    }
    if (this.#isEnding) this.#finish();
    else if (this.#isDrainAwaited && this.#outgoingBytes < HIGH_WATER_BYTES) {
      this.#isDrainAwaited = false;
      this.emit('drain');
    }
  }

  #sendFrame(bytesMax: number): void {
    const outgoing = this.#outgoing as Uint8Array[];
    const first = outgoing[0] as Uint8Array;
    const left = first.length - this.#sentOfFirst;
    const count = Math.min(left, bytesMax);
    const data =
      count === first.length ? first : first.subarray(this.#sentOfFirst, this.#sentOfFirst + count);
    if (count === left) {
      this.#sentOfFirst = 0;
      if (outgoing.length === 1) this.#outgoing = null;
      else outgoing.shift();
    } else this.#sentOfFirst += count;
    this.#outgoingBytes -= count;
    this.sentBytes += count;
    this.#carrier.queued(-count);
    const isLast = this.#isEnding && this.#outgoing === null && !this.#isTrailed;
    this.#sender.sendData(this, data, isLast);
    if (isLast) this.#localEnded();
  }

  #finish(): void {
    if (this.isLocalEnded || this.destroyed) return;
    if (!this.#isTrailed) {
      this.#sender.sendData(this, NO_BYTES, true);
      this.#localEnded();
    } else if (!this.#areTrailersAsked) {
      this.#areTrailersAsked = true;
      if (!this.emit('wantTrailers')) this.sendTrailers({});
    }
  }

  /** Ends the stream, and drops what it holds; its connection emits 'close'. */
  over(): void {
    this.destroyed = true;
    const unread = this.#incoming?.length ?? 0;
    this.#incoming?.release();
    if (unread > 0) this.#carrier.unread(-unread);
    if (this.#outgoingBytes > 0) this.#carrier.queued(-this.#outgoingBytes);
    this.#incoming = null;
    this.#outgoing = null;
    this.#outgoingBytes = 0;
  }

  #add(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    if (this.#outgoing === null) this.#outgoing = [chunk];
    else this.#outgoing.push(chunk);
    this.#outgoingBytes += chunk.length;
    this.#carrier.queued(chunk.length);
  }

  #ended(): void {
    if (this.readableEnded) return;
    this.readableEnded = true;
    this.emit('end');
  }

  #localEnded(): void {
    this.isLocalEnded = true;
    this.#carrier.answered(this);
    this.emit('finish');
  }
}

function drainIncoming(stream: OwnStream): void {
  stream.drain();
}
