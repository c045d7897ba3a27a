import { TokenBucket } from '../../shared/token-bucket.ts';
import {
  BODY_BYTES_A_FRAME,
  BODY_FRAMES_SPARE,
  type ConnectionOptions,
  QUEUED_BYTES_MAX,
  REJECTED_STREAMS_MAX,
  RESET_RATE,
  WINDOW_BYTES,
} from './connection-options.ts';
import { uint32At } from './frames/frame-cutter.ts';
import * as h2 from './frames/protocol.ts';
import type { BlockHead, HeaderBlocks } from './header-blocks.ts';
import { KnownStreams } from './known-streams.ts';
import { OwnStream, type StreamCarrier, type UnreadBytes } from './own-stream.ts';
import type { ReadTurns } from './read-turns.ts';
import { ReceiveWindow } from './receive-window.ts';
import { areTrailers, type RequestHead } from './request-head.ts';
import type { SendSide } from './send-side.ts';

/** The connection as its streams need it. */
export interface StreamsOwner {
  /** Nothing is read any more. */
  readonly isOver: boolean;
  /** Ends the connection of a peer that has broken the protocol. */
  fail(code: number, detail: string): void;
  /** Counts a frame that was sent and that the peer need not take. */
  countControl(): void;
  /** Called when data of an answer waits for windows, or for the socket. */
  waits(): void;
  /** Called when the last stream has ended, and no new ones are taken. */
  left(): void;
}

type StreamsParts = {
  readonly owner: StreamsOwner;
  readonly options: ConnectionOptions;
  readonly sender: SendSide;
  readonly blocks: HeaderBlocks;
  readonly turns: ReadTurns;
};

/**
 * The streams of one connection (RFC 9113 sections 5 and 6.9). Opens them, and takes their bodies, windows and resets. Sends
 * the peer the errors that it made with one of them.
 */
export class OpenStreams implements StreamCarrier {
  readonly sender: SendSide;
  /** No new streams are taken. */
  isLeaving = false;
  readonly #owner: StreamsOwner;
  readonly #options: ConnectionOptions;
  readonly #blocks: HeaderBlocks;
  readonly #turns: ReadTurns;
  readonly #streams = new Map<number, OwnStream>();
  readonly #known = new KnownStreams();
  readonly #resets = new TokenBucket(RESET_RATE, performance.now());
  readonly #window: ReceiveWindow;
  #peerWindow = h2.WINDOW_FIRST;
  #queuedBytes = 0;
  #rejectedCount = 0;

  constructor({ owner, options, sender, blocks, turns }: StreamsParts) {
    this.sender = sender;
    this.#owner = owner;
    this.#options = options;
    this.#blocks = blocks;
    this.#turns = turns;
    this.#window = new ReceiveWindow(sender);
  }

  /** Open streams by id. */
  get all(): ReadonlyMap<number, OwnStream> {
    return this.#streams;
  }

  /** The id of the newest stream that was taken. */
  get lastId(): number {
    return this.#known.lastId;
  }

  /** Ends all open streams. */
  endAll(): void {
    for (const stream of this.#streams.values()) this.#streamOver(stream);
  }

  /** Takes a DATA frame, padding and all. */
  data(flags: number, id: number, bytes: Uint8Array, begin: number, end: number): void {
    let from = begin;
    let to = end;
    if (id === 0) return this.#owner.fail(h2.PROTOCOL_ERROR, 'data of no stream');
    if (!this.#window.consume(end - begin)) {
      return this.#owner.fail(h2.FLOW_CONTROL_ERROR, 'more data than the window of the connection');
    }
    if ((flags & h2.PADDED) !== 0) {
      const padding = from < to ? (bytes[from] as number) : 0;
      from += 1;
      to -= padding;
      if (from > to) return this.#owner.fail(h2.PROTOCOL_ERROR, 'padding is longer than its frame');
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id))
        this.#owner.fail(h2.PROTOCOL_ERROR, 'data of a stream that was not opened');
      else if (!this.#known.isReset(id) && !this.#isIgnored(id)) {
        this.#owner.fail(h2.STREAM_CLOSED, 'data of a closed stream');
      }
      return;
    }
    if (stream.isRemoteEnded) return this.resetAs(id, h2.STREAM_CLOSED);
    stream.receiveWindow -= end - begin;
    if (stream.receiveWindow < 0) return this.resetAs(id, h2.FLOW_CONTROL_ERROR);
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
      if (isWrong) return this.resetAs(stream.id, h2.PROTOCOL_ERROR);
    }
    if (stream.frameCount > BODY_FRAMES_SPARE + receivedBytes / BODY_BYTES_A_FRAME) {
      return this.resetAs(stream.id, h2.ENHANCE_YOUR_CALM);
    }
    if (count < windowBytes) this.consumed(stream, windowBytes - count);
    if (count > 0) stream.dataCame(bytes.subarray(from, to));
    if (isLast && !stream.destroyed) this.#requestEnded(stream);
  }

  #requestEnded(stream: OwnStream): void {
    stream.endCame();
    if (stream.isLocalEnded && !stream.destroyed) this.#streamOver(stream);
  }

  /** Takes a whole header block: that of a new request, or trailers. */
  blockCame({ id, isLast, isSelfDependent }: BlockHead, block: Uint8Array): void {
    this.#turns.countBlock(block.length);
    if (!this.#blocks.decode(block)) {
      return this.#owner.fail(h2.COMPRESSION_ERROR, 'a header block is broken');
    }
    const stream = this.#streams.get(id);
    if (stream !== undefined) return this.#trailers(stream, isLast, isSelfDependent);
    if (id <= this.#known.lastId) {
      if (this.#known.isReset(id)) return;
      if (this.#known.wasLeftOut(id)) this.#owner.fail(h2.PROTOCOL_ERROR, 'ids of streams go back');
      else this.#owner.fail(h2.STREAM_CLOSED, 'headers of a closed stream');
      return;
    }
    // A stream that was on its way when the connection was asked to end belongs on another one.
    if (this.isLeaving) return;
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
    if (stream.isRemoteEnded) return this.resetAs(id, h2.STREAM_CLOSED);
    const isWrongLength = contentLength >= 0 && contentLength !== receivedBytes;
    if (!isLast || isSelfDependent || isWrongLength || !areTrailers(this.#blocks.fields)) {
      return this.resetAs(id, h2.PROTOCOL_ERROR);
    }
    if (this.#blocks.isTooLong) return this.resetAs(id, h2.ENHANCE_YOUR_CALM);
    this.#requestEnded(stream);
  }

  /** Refuses a stream beyond the limit. The peer may try again once another one has ended. */
  #reject(id: number, isLast: boolean): void {
    this.#rejectedCount += 1;
    if (this.#rejectedCount > REJECTED_STREAMS_MAX) {
      this.#owner.fail(h2.ENHANCE_YOUR_CALM, 'too many streams were refused');
    } else this.#refuse(id, isLast, h2.REFUSED_STREAM);
  }

  /** Refuses a stream without opening it. */
  #refuse(id: number, isLast: boolean, code: number): void {
    if (!isLast) this.#known.wasReset(id);
    this.#putReset(id, code);
    if (code !== h2.REFUSED_STREAM) this.#countReset();
  }

  /** Resets an open stream with which the peer has done something wrong. */
  resetAs(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.reset(stream, code);
    this.#countReset();
  }

  #countReset(): void {
    this.#turns.countReset();
    if (!this.#resets.tryAcquire(performance.now()))
      this.#owner.fail(h2.ENHANCE_YOUR_CALM, 'too many streams were reset');
  }

  /** Takes an RST_STREAM frame. */
  rstStream(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (to - from !== 4)
      return this.#owner.fail(h2.FRAME_SIZE_ERROR, 'a reset is of another length');
    if (id === 0 || this.#isIdle(id)) {
      return this.#owner.fail(h2.PROTOCOL_ERROR, 'reset of a stream that was not opened');
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

  /** Changes the window of each stream to that of the peer's settings (RFC 9113 section 6.9.2). */
  changeWindows(initialWindow: number): void {
    const change = initialWindow - this.#peerWindow;
    this.#peerWindow = initialWindow;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += change;
      if (stream.sendWindow > h2.WINDOW_MAX) {
        return this.#owner.fail(h2.FLOW_CONTROL_ERROR, 'a window is too large');
      }
    }
    if (change <= 0) return;
    for (const stream of this.#streams.values()) {
      if (stream.isWaiting) stream.send(Number.POSITIVE_INFINITY);
    }
  }

  /** Takes a WINDOW_UPDATE frame, of a stream or of the connection. */
  windowUpdate(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (to - from !== 4) {
      return this.#owner.fail(h2.FRAME_SIZE_ERROR, 'a window update is of another length');
    }
    const count = uint32At(bytes, from) & 0x7fff_ffff;
    if (id === 0) {
      if (count === 0) return this.#owner.fail(h2.PROTOCOL_ERROR, 'a window is opened by nothing');
      this.sender.sendWindow += count;
      if (this.sender.sendWindow > h2.WINDOW_MAX) {
        return this.#owner.fail(h2.FLOW_CONTROL_ERROR, 'the window of the connection is too large');
      }
      return this.sender.sendWaiting();
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id))
        this.#owner.fail(h2.PROTOCOL_ERROR, 'window of a stream that was not opened');
      return;
    }
    if (count === 0) return this.resetAs(id, h2.PROTOCOL_ERROR);
    stream.sendWindow += count;
    if (stream.sendWindow > h2.WINDOW_MAX) this.resetAs(id, h2.FLOW_CONTROL_ERROR);
    else if (stream.isWaiting) stream.send(Number.POSITIVE_INFINITY);
  }

  #isIdle(id: number): boolean {
    return (id & 1) === 0 || (id > this.#known.lastId && !this.isLeaving);
  }

  /** Whether a stream was not taken because the connection is to end. */
  #isIgnored(id: number): boolean {
    return this.isLeaving && id > this.#known.lastId;
  }

  queued(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  unread(bytes: number): void {
    if (!this.#owner.isOver) this.#window.unread(bytes);
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
    this.#owner.countControl();
  }

  #streamOver(stream: OwnStream): void {
    if (stream.destroyed) return;
    this.#streams.delete(stream.id);
    stream.over();
    this.sender.over(stream);
    if (this.isLeaving && this.#streams.size === 0) this.#owner.left();
  }

  waits(): void {
    this.#owner.waits();
  }
}
