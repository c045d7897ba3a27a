import type { Socket } from 'node:net';
import {
  type ConnectionOptions,
  FAREWELL_MS,
  HELD_SPARE,
  SETTINGS_PER_FRAME_MAX,
  WINDOW_BYTES,
} from './connection-options.ts';
import { FrameCutter, type FrameSink, uint32At } from './frames/frame-cutter.ts';
import * as h2 from './frames/protocol.ts';
import { ownSettings, readSettings, SETTING_BYTES } from './frames/settings.ts';
import { HeaderBlocks } from './header-blocks.ts';
import { OpenStreams, type StreamsOwner } from './open-streams.ts';
import { ReadTurns } from './read-turns.ts';
import { SendSide } from './send-side.ts';
import { StallWatch } from './stall-watch.ts';

/**
 * The server's side of one connection of HTTP/2 without TLS (RFC 9113). It takes frames from a socket, keeps windows and
 * states, and sends the peer the errors that it made. All bounds are in connection-options.ts. All that is sent within one
 * turn of the loop leaves as one write.
 */
export class Http2Connection implements FrameSink, StreamsOwner {
  readonly sender: SendSide;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #blocks: HeaderBlocks;
  readonly #cutter = new FrameCutter();
  readonly #streams: OpenStreams;
  #prefaceBytes = 0;
  #isGreeted = false;
  /** The peer has acknowledged our settings. */
  #isAcknowledged = false;
  #isAskedToGo = false;
  /** Nothing is read any more. */
  isOver = false;
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
    this.#turns = new ReadTurns(socket, this.sender, (rest) => {
      if (!this.isOver) this.#read(rest);
    });
    this.#blocks = new HeaderBlocks(options.headerBytesMax);
    this.#streams = new OpenStreams({
      owner: this,
      options,
      sender: this.sender,
      blocks: this.#blocks,
      turns: this.#turns,
    });
    this.#stall = new StallWatch({
      stallMs: options.answerStallMs,
      sender: this.sender,
      streams: this.#streams.all,
      onIncident: options.onIncident,
      onStream: (stream) => this.#streams.resetAs(stream.id, h2.ENHANCE_YOUR_CALM),
      onConnection: () => this.destroy(),
    });
    this.#handshake = setTimeout(() => this.destroy(), options.handshakeMs);
    this.#handshake.unref();
    this.#idle = setTimeout(() => this.#quiet(), options.idleMs);
    this.#idle.unref();
    socket.on('data', (chunk: Buffer) => this.#came(chunk));
    socket.on('error', (error: Error) => {
      // A peer without calls that ends when asked to go leaves our GOAWAY unread, which resets the connection.
      const isLeft = this.#hasPeerLeft || (this.#isAskedToGo && this.openStreamCount === 0);
      if (!isLeft && !this.isOver) options.onIncident('http2_session', error.message);
    });
    socket.once('close', () => this.#closed());
    const settings = ownSettings(options.streamsMax, options.headerBytesMax, WINDOW_BYTES);
    this.sender.frame(h2.SETTINGS, 0, 0, settings);
    this.sender.numberFrame(h2.WINDOW_UPDATE, 0, WINDOW_BYTES - h2.WINDOW_FIRST);
    this.sender.flush();
    socket.resume();
  }

  get openStreamCount(): number {
    return this.#streams.all.size;
  }

  /**
   * Asks the peer to open no more streams, and refuses none (RFC 9113 section 6.8). Waits until the peer has acknowledged our
   * settings: a client that is asked before gives up its first request.
   */
  askToGo(): void {
    this.#isAskedToGo = true;
    if (this.isOver || !this.#isAcknowledged) return;
    this.sender.goaway(h2.STREAM_ID_MAX, h2.NO_ERROR);
  }

  /** Refuses new streams, and closes the connection when the last one has ended. */
  close(): void {
    if (this.#streams.isLeaving || this.isOver) return;
    this.#streams.isLeaving = true;
    this.sender.goaway(this.#streams.lastId, h2.NO_ERROR);
    if (this.#streams.all.size === 0) this.#leave(this.#options.idleMs);
  }

  /** Ends the connection and all its streams at once. */
  destroy(): void {
    this.isOver = true;
    this.#socket.destroy();
    this.#closed();
  }

  #came(chunk: Buffer): void {
    if (this.isOver) return;
    this.#idle.refresh();
    if (!this.#turns.holds(chunk)) this.#read(chunk);
  }

  #read(chunk: Buffer): void {
    this.#turns.begin();
    this.sender.isHeld = true;
    try {
      let from = 0;
      if (this.#prefaceBytes < h2.PREFACE.length) from = this.#readPreface(chunk);
      if (from < chunk.length && !this.isOver) from = this.#cutter.cut(chunk, from, this);
      if (this.#turns.isSpent && !this.isOver) this.#turns.leave(chunk.subarray(from));
      if (this.#cutter.heldCapacity > HELD_SPARE) this.#blocks.forget();
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
      this.fail(h2.PROTOCOL_ERROR, 'the preface is another one');
    }
    this.#prefaceBytes = until;
    return count;
  }

  frameTooLong(): void {
    this.fail(h2.FRAME_SIZE_ERROR, 'a frame is too long');
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
      this.fail(h2.PROTOCOL_ERROR, 'a header block is interrupted');
    } else if (!this.#isGreeted && (type !== h2.SETTINGS || (flags & h2.ACK) !== 0)) {
      this.fail(h2.PROTOCOL_ERROR, 'the first frame is none of settings');
    } else this.#dispatch(type, flags, id, bytes, from, to);
    return !this.isOver && !this.#turns.isSpent;
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
        return this.#streams.data(flags, id, bytes, from, to);
      case h2.HEADERS:
        return this.#headers(flags, id, bytes, from, to);
      case h2.PRIORITY:
        return this.#priority(id, bytes, from, to);
      case h2.RST_STREAM:
        return this.#streams.rstStream(id, bytes, from, to);
      case h2.SETTINGS:
        return this.#settings(flags, id, bytes, from, to);
      case h2.PUSH_PROMISE:
        return this.fail(h2.PROTOCOL_ERROR, 'a client pushes');
      case h2.PING:
        return this.#ping(flags, id, bytes, from, to);
      case h2.GOAWAY:
        return this.#goaway(id, bytes, from, to);
      case h2.WINDOW_UPDATE:
        return this.#streams.windowUpdate(id, bytes, from, to);
      case h2.CONTINUATION:
        return this.#continuation(flags, bytes, from, to);
      default:
      // Frames of unknown types are ignored (RFC 9113 section 5.5).
    }
  }

  #headers(flags: number, id: number, bytes: Uint8Array, begin: number, end: number): void {
    let from = begin;
    let to = end;
    if ((id & 1) === 0) return this.fail(h2.PROTOCOL_ERROR, 'headers of no stream of a client');
    if ((flags & h2.PADDED) !== 0) {
      to -= from < to ? (bytes[from] as number) : 0;
      from += 1;
    }
    let isSelfDependent = false;
    if ((flags & h2.PRIORITIZED) !== 0) {
      if (from + h2.PRIORITY_BYTES > end) {
        return this.fail(h2.FRAME_SIZE_ERROR, 'a priority is cut short');
      }
      isSelfDependent = (uint32At(bytes, from) & 0x7fff_ffff) === id;
      from += h2.PRIORITY_BYTES;
    }
    if (from > to) return this.fail(h2.PROTOCOL_ERROR, 'padding is longer than its frame');
    const isLast = (flags & h2.END_STREAM) !== 0;
    const head = { id, isLast, isSelfDependent };
    const block = bytes.subarray(from, to);
    if ((flags & h2.END_HEADERS) !== 0) this.#streams.blockCame(head, block);
    else if (!this.#blocks.begin(head, block)) {
      this.fail(h2.ENHANCE_YOUR_CALM, 'too many header blocks are not complete');
    }
  }

  #continuation(flags: number, bytes: Uint8Array, from: number, to: number): void {
    const { open } = this.#blocks;
    if (open === null) {
      return this.fail(h2.PROTOCOL_ERROR, 'a header block goes on that has not begun');
    }
    if (!this.#blocks.goOn(bytes.subarray(from, to))) {
      return this.fail(h2.ENHANCE_YOUR_CALM, 'a header block is too long');
    }
    if ((flags & h2.END_HEADERS) !== 0) this.#streams.blockCame(open, this.#blocks.takeWhole());
  }

  #priority(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id === 0) return this.fail(h2.PROTOCOL_ERROR, 'priority of no stream');
    const isCut = to - from !== h2.PRIORITY_BYTES;
    if (!isCut && (uint32At(bytes, from) & 0x7fff_ffff) !== id) return;
    const code = isCut ? h2.FRAME_SIZE_ERROR : h2.PROTOCOL_ERROR;
    if (this.#streams.all.has(id)) this.#streams.resetAs(id, code);
    else this.fail(code, 'a priority is wrong');
  }

  #settings(flags: number, id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.fail(h2.PROTOCOL_ERROR, 'settings of a stream');
    if ((flags & h2.ACK) !== 0) {
      if (to > from) this.fail(h2.FRAME_SIZE_ERROR, 'settings are acknowledged with more');
      else if (!this.#isAcknowledged) {
        this.#isAcknowledged = true;
        if (this.#isAskedToGo) this.askToGo();
      }
      return;
    }
    const count = (to - from) / SETTING_BYTES;
    if (!Number.isInteger(count)) return this.fail(h2.FRAME_SIZE_ERROR, 'settings are cut short');
    if (count > SETTINGS_PER_FRAME_MAX) {
      return this.fail(h2.ENHANCE_YOUR_CALM, 'too many settings in a frame');
    }
    const { error, initialWindow } = readSettings(bytes, from, to);
    if (error !== h2.NO_ERROR) return this.fail(error, 'a setting has a value that it cannot have');
    if (!this.#isGreeted) clearTimeout(this.#handshake);
    this.#isGreeted = true;
    this.sender.frame(h2.SETTINGS, h2.ACK, 0, NO_BYTES);
    this.countControl();
    if (initialWindow >= 0) this.#streams.changeWindows(initialWindow);
  }

  #ping(flags: number, id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.fail(h2.PROTOCOL_ERROR, 'ping of a stream');
    if (to - from !== h2.PING_BYTES) {
      return this.fail(h2.FRAME_SIZE_ERROR, 'a ping is of another length');
    }
    if ((flags & h2.ACK) !== 0) return;
    this.sender.frame(h2.PING, h2.ACK, 0, bytes.subarray(from, to));
    this.countControl();
  }

  /** Counts a frame that makes us send one that the peer need not take. Ends the connection when there are too many. */
  countControl(): void {
    if (this.sender.countControl()) return;
    this.fail(h2.ENHANCE_YOUR_CALM, 'a flood of frames that want an answer');
  }

  #goaway(id: number, bytes: Uint8Array, from: number, to: number): void {
    if (id !== 0) return this.fail(h2.PROTOCOL_ERROR, 'goaway of a stream');
    if (to - from < h2.GOAWAY_BYTES_MIN)
      return this.fail(h2.FRAME_SIZE_ERROR, 'a goaway is cut short');
    const code = uint32At(bytes, from + 4);
    this.#hasPeerLeft = true;
    if (code === h2.NO_ERROR) return this.close();
    this.fail(h2.NO_ERROR, `the peer ended the session with error code ${code}`);
  }

  fail(code: number, detail: string): void {
    if (this.isOver) return;
    this.#options.onIncident('http2_session', detail);
    this.sender.goaway(this.#streams.lastId, code);
    this.isOver = true;
    this.#streams.endAll();
    this.#leave(FAREWELL_MS);
  }

  /** Sends the last frames, and ends the socket. */
  #leave(patienceMs: number): void {
    this.isOver = true;
    clearTimeout(this.#handshake);
    this.#blocks.drop();
    this.sender.leave(patienceMs);
  }

  waits(): void {
    if (!this.isOver) this.#stall.begin();
  }

  left(): void {
    this.#leave(this.#options.idleMs);
  }

  #quiet(): void {
    if (this.#streams.all.size === 0) this.close();
    if (!this.isOver) this.#idle.refresh();
  }

  /** Releases all that the connection holds. Idempotent. */
  #closed(): void {
    clearTimeout(this.#handshake);
    clearTimeout(this.#idle);
    this.#stall.stop();
    this.isOver = true;
    this.#blocks.drop();
    this.#streams.endAll();
    this.#options.onClose();
  }
}

const NO_BYTES = new Uint8Array();
