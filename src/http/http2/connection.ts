import type { Socket } from 'node:net';
import {
  BODY_BYTES_A_FRAME,
  BODY_FRAMES_SPARE,
  type ConnectionOptions,
  FAREWELL_MS,
  HELD_ROOM_SPARE,
  QUEUED_BYTES_MAX,
  REJECTED_STREAMS_MAX,
  RESET_BURST,
  RESET_PER_SECOND,
  SETTINGS_PER_FRAME_MAX,
  WINDOW_BYTES,
} from './connection-options.ts';
import { FrameCutter, type FrameSink, uint32At } from './frame-cutter.ts';
import { type BlockHead, HeaderBlocks } from './header-blocks.ts';
import { KnownStreams } from './known-streams.ts';
import { OwnStream, type StreamCarrier, type UnreadBytes } from './own-stream.ts';
import * as h2 from './protocol.ts';
import { ReadTurns } from './read-turns.ts';
import { ReceiveWindow } from './receive-window.ts';
import { areTrailers, type RequestHead } from './request-head.ts';
import { SendSide } from './send-side.ts';
import { ownSettings, readSettings, SETTING_BYTES } from './settings.ts';
import { StallWatch } from './stall-watch.ts';
import { TokenBucket } from './token-bucket.ts';

/**
 * One connection of HTTP/2 without TLS, the server's side (RFC 9113): takes frames from a socket, keeps windows and states, and
 * tells the peer what it did wrong. All bounds are in connection-options.ts. What is sent within one turn of the loop leaves as one write.
 */
export class Http2Connection implements FrameSink, StreamCarrier {
  readonly sender: SendSide;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #blocks: HeaderBlocks;
  readonly #cutter = new FrameCutter();
  readonly #streams = new Map<number, OwnStream>();
  readonly #known = new KnownStreams();
  readonly #resets = new TokenBucket(RESET_BURST, RESET_PER_SECOND);
  #prefaceBytes = 0;
  #isGreeted = false;
  /** The peer has acknowledged our settings. */
  #isAcknowledged = false;
  #isAskedToGo = false;
  #peerWindow = h2.WINDOW_FIRST;
  readonly #window: ReceiveWindow;
  #queuedBytes = 0;
  #rejectedCount = 0;
  /** No new streams are taken. */
  #isLeaving = false;
  /** Nothing is read any more. */
  #isOver = false;
  #hasPeerLeft = false;
  readonly #handshake: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout;
  readonly #turns: ReadTurns;
  readonly #stall: StallWatch;

  /** Greets the peer; the bytes of `socket` are still unread. */
  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.sender = new SendSide(
      socket,
      () => options.onCount(-1),
      () => this.waits(),
      () => this.#turns.goOn(),
    );
    this.#window = new ReceiveWindow(this.sender);
    this.#turns = new ReadTurns(socket, this.sender, (rest) => {
      if (!this.#isOver) this.#read(rest);
    });
    this.#stall = new StallWatch({
      stallMs: options.answerStallMs,
      sender: this.sender,
      streams: this.#streams,
      onIncident: options.onIncident,
      onStream: (stream) => this.#resetAs(stream.id, h2.ENHANCE_YOUR_CALM),
      onConnection: () => this.destroy(),
    });
    this.#blocks = new HeaderBlocks(options.headerBytesMax);
    this.#handshake = setTimeout(() => this.destroy(), options.handshakeMs);
    this.#handshake.unref();
    this.#idle = setTimeout(() => this.#quiet(), options.idleMs);
    this.#idle.unref();
    socket.on('data', (chunk: Buffer) => this.#came(chunk));
    socket.on('error', (error: Error) => {
      if (!this.#hasPeerLeft && !this.#isOver) options.onIncident('http2_session', error.message);
    });
    socket.once('close', () => this.#closed());
    const settings = ownSettings(options.streamsMax, options.headerBytesMax, WINDOW_BYTES);
    this.sender.frame(h2.SETTINGS, 0, 0, settings);
    this.sender.numberFrame(h2.WINDOW_UPDATE, 0, WINDOW_BYTES - h2.WINDOW_FIRST);
    this.sender.flush();
    socket.resume();
  }

  get openStreamCount(): number {
    return this.#streams.size;
  }

  /**
   * Asks the peer to open no more streams, and refuses none (RFC 9113 section 6.8); once it has acknowledged our settings, since a client that is
   * asked before gives up what it is about to send first.
   */
  askToGo(): void {
    this.#isAskedToGo = true;
    if (this.#isOver || !this.#isAcknowledged) return;
    this.sender.goaway(h2.STREAM_ID_MAX, h2.NO_ERROR);
  }

  /** Refuses new streams, and closes the connection when the last one has ended. */
  close(): void {
    if (this.#isLeaving || this.#isOver) return;
    this.#isLeaving = true;
    this.sender.goaway(this.#known.lastId, h2.NO_ERROR);
    if (this.#streams.size === 0) this.#leave(this.#options.idleMs);
  }

  /** Ends the connection and all its streams at once. */
  destroy(): void {
    this.#isOver = true;
    this.#socket.destroy();
    this.#closed();
  }

  #came(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#idle.refresh();
    if (!this.#turns.holds(chunk)) this.#read(chunk);
  }

  #read(chunk: Buffer): void {
    this.#turns.begin();
    this.sender.isHeld = true;
    try {
      let from = 0;
      if (this.#prefaceBytes < h2.PREFACE.length) from = this.#readPreface(chunk);
      if (from < chunk.length && !this.#isOver) from = this.#cutter.cut(chunk, from, this);
      if (this.#turns.isSpent && !this.#isOver) this.#turns.leave(chunk.subarray(from));
      if (this.#cutter.heldRoom > HELD_ROOM_SPARE) this.#blocks.forget();
    } finally {
      this.sender.isHeld = false;
      this.sender.flush();
    }
  }

  #readPreface(chunk: Buffer): number {
    const missing = h2.PREFACE.length - this.#prefaceBytes;
    const count = Math.min(missing, chunk.length);
    const until = this.#prefaceBytes + count;
    if (h2.PREFACE.compare(chunk, 0, count, this.#prefaceBytes, until) !== 0) {
      this.#fail(h2.PROTOCOL_ERROR, 'the preface is another one');
    }
    this.#prefaceBytes = until;
    return count;
  }

  frameTooLong(): void {
    this.#fail(h2.FRAME_SIZE_ERROR, 'a frame is too long');
  }

  frame(
    type: number,
    flags: number,
    id: number,
    bytes: Uint8Array,
    from: number,
    to: number,
  ): boolean {
    const { open } = this.#blocks;
    if (open !== null && (type !== h2.CONTINUATION || id !== open.id)) {
      this.#fail(h2.PROTOCOL_ERROR, 'a header block is interrupted');
    } else if (!this.#isGreeted && (type !== h2.SETTINGS || (flags & h2.ACK) !== 0)) {
      this.#fail(h2.PROTOCOL_ERROR, 'the first frame is none of settings');
    } else this.#dispatch(type, flags, id, bytes, from, to);
    return !this.#isOver && !this.#turns.isSpent;
  }

  #dispatch(
    type: number,
    flags: number,
    id: number,
    bytes: Uint8Array,
    from: number,
    to: number,
  ): void {
    switch (type) {
      case h2.DATA:
        return this.#data(flags, id, bytes, from, to);
      case h2.HEADERS:
        return this.#headers(flags, id, bytes, from, to);
      case h2.PRIORITY:
        return this.#priority(id, bytes, from, to);
      case h2.RST_STREAM:
        return this.#rstStream(id, bytes, from, to);
      case h2.SETTINGS:
        return this.#settings(flags, id, bytes, from, to);
      case h2.PUSH_PROMISE:
        return this.#fail(h2.PROTOCOL_ERROR, 'a client pushes');
      case h2.PING:
        return this.#ping(flags, id, bytes, from, to);
      case h2.GOAWAY:
        return this.#goaway(id, bytes, from, to);
      case h2.WINDOW_UPDATE:
        return this.#windowUpdate(id, bytes, from, to);
      case h2.CONTINUATION:
        return this.#continuation(flags, bytes, from, to);
      default:
      // RFC 9113 section 5.5: what is not known is ignored.
    }
  }

  #data(flags: number, id: number, bytes: Uint8Array, begin: number, end: number): void {
    let from = begin;
    let to = end;
    if (id === 0) return this.#fail(h2.PROTOCOL_ERROR, 'data of no stream');
    if (!this.#window.take(end - begin)) {
      return this.#fail(h2.FLOW_CONTROL_ERROR, 'more data than the window of the connection');
    }
    if ((flags & h2.PADDED) !== 0) {
      const padding = from < to ? (bytes[from] as number) : 0;
      from += 1;
      to -= padding;
      if (from > to) return this.#fail(h2.PROTOCOL_ERROR, 'padding is longer than its frame');
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) this.#fail(h2.PROTOCOL_ERROR, 'data of a stream that was not opened');
      else if (!this.#known.isReset(id) && !this.#isIgnored(id)) {
        this.#fail(h2.STREAM_CLOSED, 'data of a closed stream');
      }
      return;
    }
    if (stream.isRemoteEnded) return this.#resetAs(id, h2.STREAM_CLOSED);
    stream.receiveWindow -= end - begin;
    if (stream.receiveWindow < 0) return this.#resetAs(id, h2.FLOW_CONTROL_ERROR);
    this.#body(stream, (flags & h2.END_STREAM) !== 0, bytes, from, to, end - begin);
  }

  #body(
    stream: OwnStream,
    isLast: boolean,
    bytes: Uint8Array,
    from: number,
    to: number,
    windowBytes: number,
  ): void {
    const count = to - from;
    stream.receivedBytes += count;
    stream.frameCount += 1;
    const { contentLength, receivedBytes } = stream;
    if (contentLength >= 0) {
      const isWrong = isLast ? receivedBytes !== contentLength : receivedBytes > contentLength;
      if (isWrong) return this.#resetAs(stream.id, h2.PROTOCOL_ERROR);
    }
    if (stream.frameCount > BODY_FRAMES_SPARE + receivedBytes / BODY_BYTES_A_FRAME) {
      return this.#resetAs(stream.id, h2.ENHANCE_YOUR_CALM);
    }
    if (count < windowBytes) this.consumed(stream, windowBytes - count);
    if (count > 0) stream.dataCame(bytes.subarray(from, to));
    if (isLast && !stream.destroyed) this.#requestEnded(stream);
  }

  #requestEnded(stream: OwnStream): void {
    stream.endCame();
    if (stream.isLocalEnded && !stream.destroyed) this.#streamOver(stream);
  }

  #headers(flags: number, id: number, bytes: Uint8Array, begin: number, end: number): void {
    let from = begin;
    let to = end;
    if ((id & 1) === 0) return this.#fail(h2.PROTOCOL_ERROR, 'headers of no stream of a client');
    if ((flags & h2.PADDED) !== 0) {
      to -= from < to ? (bytes[from] as number) : 0;
      from += 1;
    }
    let isSelfDependent = false;
    if ((flags & h2.PRIORITIZED) !== 0) {
      if (from + h2.PRIORITY_BYTES > end) {
        return this.#fail(h2.FRAME_SIZE_ERROR, 'a priority is cut short');
      }
      isSelfDependent = (uint32At(bytes, from) & 0x7fff_ffff) === id;
      from += h2.PRIORITY_BYTES;
    }
    if (from > to) return this.#fail(h2.PROTOCOL_ERROR, 'padding is longer than its frame');
    const isLast = (flags & h2.END_STREAM) !== 0;
    const head = { id, isLast, isSelfDependent };
    const block = bytes.subarray(from, to);
    if ((flags & h2.END_HEADERS) !== 0) this.#blockCame(head, block);
    else if (!this.#blocks.begin(head, block)) {
      this.#fail(h2.ENHANCE_YOUR_CALM, 'too many header blocks are not complete');
    }
  }

  #continuation(flags: number, bytes: Uint8Array, from: number, to: number): void {
    const { open } = this.#blocks;
    if (open === null) {
      return this.#fail(h2.PROTOCOL_ERROR, 'a header block goes on that has not begun');
    }
    if (!this.#blocks.goOn(bytes.subarray(from, to))) {
      return this.#fail(h2.ENHANCE_YOUR_CALM, 'a header block is too long');
    }
    if ((flags & h2.END_HEADERS) !== 0) this.#blockCame(open, this.#blocks.takeWhole());
  }

  #blockCame({ id, isLast, isSelfDependent }: BlockHead, block: Uint8Array): void {
    this.#turns.countBlock(block.length);
    if (!this.#blocks.decode(block)) {
      return this.#fail(h2.COMPRESSION_ERROR, 'a header block is broken');
    }
    const stream = this.#streams.get(id);
    if (stream !== undefined) return this.#trailers(stream, isLast, isSelfDependent);
    if (id <= this.#known.lastId) {
      if (this.#known.isReset(id)) return;
      if (this.#known.wasLeftOut(id)) this.#fail(h2.PROTOCOL_ERROR, 'ids of streams go back');
      else this.#fail(h2.STREAM_CLOSED, 'headers of a closed stream');
      return;
    }
    // What was on its way when the connection was said to end is for another one.
    if (this.#isLeaving) return;
    this.#known.opened(id);
    if (isSelfDependent) return this.#refuse(id, isLast, h2.PROTOCOL_ERROR);
    if (this.#streams.size >= this.#options.streamsMax) return this.#reject(id, isLast);
    if (this.#queuedBytes > QUEUED_BYTES_MAX) {
      return this.#refuse(id, isLast, h2.ENHANCE_YOUR_CALM);
    }
    const head = this.#blocks.head();
    if (head === null) {
      const code = this.#blocks.isTooLong ? h2.ENHANCE_YOUR_CALM : h2.PROTOCOL_ERROR;
      return this.#refuse(id, isLast, code);
    }
    if (isLast && head.contentLength > 0) return this.#refuse(id, true, h2.PROTOCOL_ERROR);
    this.#open(id, isLast, head);
  }

  #open(id: number, isLast: boolean, { headers, contentLength }: RequestHead): void {
    this.#rejectedCount = 0;
    const isHeadOnly = headers[':method'] === 'HEAD';
    const stream = new OwnStream(
      this,
      id,
      contentLength,
      isHeadOnly,
      this.#peerWindow,
      WINDOW_BYTES,
    );
    stream.isRemoteEnded = isLast;
    this.#streams.set(id, stream);
    this.#options.onCount(1);
    this.#options.onStream(stream, headers);
    if (isLast && !stream.destroyed) this.#requestEnded(stream);
  }

  #trailers(stream: OwnStream, isLast: boolean, isSelfDependent: boolean): void {
    const { id, contentLength, receivedBytes } = stream;
    if (stream.isRemoteEnded) return this.#resetAs(id, h2.STREAM_CLOSED);
    const isWrongLength = contentLength >= 0 && contentLength !== receivedBytes;
    if (!isLast || isSelfDependent || isWrongLength || !areTrailers(this.#blocks.fields)) {
      return this.#resetAs(id, h2.PROTOCOL_ERROR);
    }
    if (this.#blocks.isTooLong) return this.#resetAs(id, h2.ENHANCE_YOUR_CALM);
    this.#requestEnded(stream);
  }

  /** More streams than are allowed: who waits for ours to end may try again. */
  #reject(id: number, isLast: boolean): void {
    this.#rejectedCount += 1;
    if (this.#rejectedCount > REJECTED_STREAMS_MAX) {
      this.#fail(h2.ENHANCE_YOUR_CALM, 'too many streams were refused');
    } else this.#refuse(id, isLast, h2.REFUSED_STREAM);
  }

  /** A stream that is not opened. */
  #refuse(id: number, isLast: boolean, code: number): void {
    if (!isLast) this.#known.wasReset(id);
    this.#putReset(id, code);
    if (code !== h2.REFUSED_STREAM) this.#countReset();
  }

  /** The peer has done something wrong with a stream that is open. */
  #resetAs(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.reset(stream, code);
    this.#countReset();
  }

  #countReset(): void {
    this.#turns.countReset();
    if (!this.#resets.take()) this.#fail(h2.ENHANCE_YOUR_CALM, 'too many streams were reset');
  }

  #priority(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id === 0) return this.#fail(h2.PROTOCOL_ERROR, 'priority of no stream');
    const isCut = to - from !== h2.PRIORITY_BYTES;
    if (!isCut && (uint32At(bytes, from) & 0x7fff_ffff) !== id) return;
    const code = isCut ? h2.FRAME_SIZE_ERROR : h2.PROTOCOL_ERROR;
    if (this.#streams.has(id)) this.#resetAs(id, code);
    else this.#fail(code, 'a priority is wrong');
  }

  #rstStream(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (to - from !== 4) return this.#fail(h2.FRAME_SIZE_ERROR, 'a reset is of another length');
    if (id === 0 || this.#isIdle(id)) {
      return this.#fail(h2.PROTOCOL_ERROR, 'reset of a stream that was not opened');
    }
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      const code = uint32At(bytes, from);
      if (code !== h2.NO_ERROR && code !== h2.CANCEL) {
        this.#options.onIncident('http2_stream', `the peer reset a stream with error code ${code}`);
      }
      this.#streamOver(stream);
    }
    this.#countReset();
  }

  #settings(flags: number, id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.#fail(h2.PROTOCOL_ERROR, 'settings of a stream');
    if ((flags & h2.ACK) !== 0) {
      if (to > from) this.#fail(h2.FRAME_SIZE_ERROR, 'settings are acknowledged with more');
      else if (!this.#isAcknowledged) {
        this.#isAcknowledged = true;
        if (this.#isAskedToGo) this.askToGo();
      }
      return;
    }
    const count = (to - from) / SETTING_BYTES;
    if (!Number.isInteger(count)) return this.#fail(h2.FRAME_SIZE_ERROR, 'settings are cut short');
    if (count > SETTINGS_PER_FRAME_MAX) {
      return this.#fail(h2.ENHANCE_YOUR_CALM, 'too many settings in a frame');
    }
    const { error, initialWindow } = readSettings(bytes, from, to);
    if (error !== h2.NO_ERROR)
      return this.#fail(error, 'a setting has a value that it cannot have');
    if (!this.#isGreeted) clearTimeout(this.#handshake);
    this.#isGreeted = true;
    this.sender.frame(h2.SETTINGS, h2.ACK, 0, NO_BYTES);
    this.#countControl();
    if (initialWindow >= 0) this.#changeWindows(initialWindow);
  }

  #changeWindows(initialWindow: number): void {
    const change = initialWindow - this.#peerWindow;
    this.#peerWindow = initialWindow;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += change;
      if (stream.sendWindow > h2.WINDOW_MAX) {
        return this.#fail(h2.FLOW_CONTROL_ERROR, 'a window is too large');
      }
    }
    if (change <= 0) return;
    for (const stream of this.#streams.values()) {
      if (stream.isWaiting) stream.send(Number.POSITIVE_INFINITY);
    }
  }

  #ping(flags: number, id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.#fail(h2.PROTOCOL_ERROR, 'ping of a stream');
    if (to - from !== h2.PING_BYTES) {
      return this.#fail(h2.FRAME_SIZE_ERROR, 'a ping is of another length');
    }
    if ((flags & h2.ACK) !== 0) return;
    this.sender.frame(h2.PING, h2.ACK, 0, bytes.subarray(from, to));
    this.#countControl();
  }

  /** Each makes us send something that the peer need not take. */
  #countControl(): void {
    if (this.sender.countControl()) return;
    this.#fail(h2.ENHANCE_YOUR_CALM, 'a flood of frames that want an answer');
  }

  #goaway(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.#fail(h2.PROTOCOL_ERROR, 'goaway of a stream');
    if (to - from < h2.GOAWAY_BYTES_MIN)
      return this.#fail(h2.FRAME_SIZE_ERROR, 'a goaway is cut short');
    const code = uint32At(bytes, from + 4);
    this.#hasPeerLeft = true;
    if (code === h2.NO_ERROR) return this.close();
    this.#fail(h2.NO_ERROR, `the peer ended the session with error code ${code}`);
  }

  #windowUpdate(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (to - from !== 4) {
      return this.#fail(h2.FRAME_SIZE_ERROR, 'a window update is of another length');
    }
    const count = uint32At(bytes, from) & 0x7fff_ffff;
    if (id === 0) {
      if (count === 0) return this.#fail(h2.PROTOCOL_ERROR, 'a window is opened by nothing');
      this.sender.sendWindow += count;
      if (this.sender.sendWindow > h2.WINDOW_MAX) {
        return this.#fail(h2.FLOW_CONTROL_ERROR, 'the window of the connection is too large');
      }
      return this.sender.sendWaiting();
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) this.#fail(h2.PROTOCOL_ERROR, 'window of a stream that was not opened');
      return;
    }
    if (count === 0) return this.#resetAs(id, h2.PROTOCOL_ERROR);
    stream.sendWindow += count;
    if (stream.sendWindow > h2.WINDOW_MAX) this.#resetAs(id, h2.FLOW_CONTROL_ERROR);
    else if (stream.isWaiting) stream.send(Number.POSITIVE_INFINITY);
  }

  #isIdle(id: number): boolean {
    return (id & 1) === 0 || (id > this.#known.lastId && !this.#isLeaving);
  }

  /** Of a stream that was not taken, since the connection is to end. */
  #isIgnored(id: number): boolean {
    return this.#isLeaving && id > this.#known.lastId;
  }

  queued(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  unread(bytes: number): void {
    if (!this.#isOver) this.#window.unread(bytes);
  }

  newUnread(owner: string): UnreadBytes {
    return this.#options.newUnread(owner);
  }

  consumed(stream: OwnStream, bytes: number): void {
    this.#window.consumed(stream, bytes);
  }

  answered(stream: OwnStream): void {
    if (stream.isRemoteEnded) this.#streamOver(stream);
  }

  reset(stream: OwnStream, code: number): void {
    if (code !== h2.NO_ERROR && code !== h2.CANCEL) {
      this.#options.onIncident('http2_stream', `a stream was reset with error code ${code}`);
    }
    if (!stream.isRemoteEnded) this.#known.wasReset(stream.id);
    this.#putReset(stream.id, code);
    this.#streamOver(stream);
  }

  #putReset(id: number, code: number): void {
    this.sender.numberFrame(h2.RST_STREAM, id, code);
    this.#countControl();
  }

  #streamOver(stream: OwnStream): void {
    if (stream.destroyed) return;
    this.#streams.delete(stream.id);
    stream.over();
    this.sender.over(stream);
    if (this.#isLeaving && this.#streams.size === 0) this.#leave(this.#options.idleMs);
  }

  #fail(code: number, detail: string): void {
    if (this.#isOver) return;
    this.#options.onIncident('http2_session', detail);
    this.sender.goaway(this.#known.lastId, code);
    this.#isOver = true;
    for (const stream of this.#streams.values()) this.#streamOver(stream);
    this.#leave(FAREWELL_MS);
  }

  /** The last frames leave, and the socket with them. */
  #leave(patienceMs: number): void {
    this.#isOver = true;
    clearTimeout(this.#handshake);
    this.#blocks.drop();
    this.sender.leave(patienceMs);
  }

  waits(): void {
    if (!this.#isOver) this.#stall.begin();
  }

  #quiet(): void {
    if (this.#streams.size === 0) this.close();
    if (!this.#isOver) this.#idle.refresh();
  }

  /** Idempotent. */
  #closed(): void {
    clearTimeout(this.#handshake);
    clearTimeout(this.#idle);
    this.#stall.stop();
    this.#isOver = true;
    this.#blocks.drop();
    for (const stream of this.#streams.values()) this.#streamOver(stream);
    this.#options.onClose();
  }
}

const NO_BYTES = new Uint8Array();
