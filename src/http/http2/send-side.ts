import type { OutgoingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import {
  BACKLOG_BYTES_MAX,
  CONTROL_FRAMES_MAX,
  FAREWELL_MS,
  OUTPUT_BYTES_MAX,
} from './connection-options.ts';
import { FrameOutput } from './frames/frame-output.ts';
import { DATA, END_STREAM, GOAWAY, WINDOW_FIRST } from './frames/protocol.ts';
import { encodeHead } from './hpack/hpack-encoder.ts';
import type { OwnStream, StreamSender } from './own-stream.ts';

const GOAWAY_BYTES = 8;
const NONE: readonly OwnStream[] = [];

/**
 * Sends the frames of a connection, those of one turn of the loop as one write. Data is sent under the window of the
 * connection, and no more of it than the socket passes on. One write waits for the kernel at a time. Frames that come
 * meanwhile are gathered, and nothing more is read of a peer that does not read. Streams that are over get their 'close' when
 * their last bytes are with the kernel.
 */
export class SendSide implements StreamSender {
  sendWindow = WINDOW_FIRST;
  /** Set while frames are read: the frames that they cause leave when all are read. */
  isHeld = false;
  readonly #socket: Socket;
  readonly #onOver: (stream: OwnStream) => void;
  readonly #onBacklog: () => void;
  readonly #onRelief: () => void;
  readonly #output = new FrameOutput();
  /** Streams whose data waits for the connection. */
  readonly #waiting = new Set<OwnStream>();
  /**
   * Streams that are over but not reported yet: answered ones, and ones given up before their answer. Null while there are
   * none: an array that is kept grows old, and its former elements stay in memory until the next full collection.
   */
  #ended: OwnStream[] | null = null;
  #dropped: OwnStream[] | null = null;
  /** Control frames that the peer has not taken, and those among them that are not with the socket. */
  #controlCount = 0;
  #freshControlCount = 0;
  #isFirstBlock = true;
  #isFlushAsked = false;
  #isBacklogged = false;
  #isLast = false;
  #patienceMs = 0;

  /**
   * `onBacklog` is called when the kernel takes no more. `onRelief` is called when it has taken everything: the socket is to
   * be read again then.
   */
  constructor(
    socket: Socket,
    onOver: (stream: OwnStream) => void,
    onBacklog: () => void,
    onRelief: () => void,
  ) {
    this.#socket = socket;
    this.#onOver = onOver;
    this.#onBacklog = onBacklog;
    this.#onRelief = onRelief;
  }

  /** Whether data may be given to the socket now. */
  get canSend(): boolean {
    return this.#output.bytes + this.#socket.writableLength < OUTPUT_BYTES_MAX;
  }

  /** Bytes that the kernel has taken. */
  get takenBytes(): number {
    const socket = this.#socket as Socket & { _handle?: { writeQueueSize?: number } | null };
    return socket.bytesWritten - (socket._handle?.writeQueueSize ?? socket.writableLength);
  }

  /** Whether the peer takes less than it asks for; nothing is read of it meanwhile. */
  get isBacklogged(): boolean {
    return this.#isBacklogged;
  }

  frame(type: number, flags: number, id: number, payload: Uint8Array): void {
    this.#output.frame(type, flags, id, payload);
    this.askFlush();
  }

  numberFrame(type: number, id: number, value: number): void {
    this.#output.numberFrame(type, id, value);
    this.askFlush();
  }

  goaway(lastId: number, code: number): void {
    const payload = Buffer.alloc(GOAWAY_BYTES);
    payload.writeUInt32BE(lastId, 0);
    payload.writeUInt32BE(code, 4);
    this.frame(GOAWAY, 0, 0, payload);
  }

  /** Counts a frame that the peer has provoked and need not take; false when there are too many of them. */
  countControl(): boolean {
    this.#controlCount += 1;
    this.#freshControlCount += 1;
    return this.#controlCount <= CONTROL_FRAMES_MAX;
  }

  sendHead(
    stream: OwnStream,
    head: OutgoingHttpHeaders,
    isTrailer: boolean,
    isLast: boolean,
  ): void {
    const block = encodeHead(head, isTrailer, this.#isFirstBlock);
    this.#isFirstBlock = false;
    this.#output.block(isLast ? END_STREAM : 0, stream.id, block);
    this.askFlush();
  }

  sendData(stream: OwnStream, data: Uint8Array, isLast: boolean): void {
    stream.sendWindow -= data.length;
    this.sendWindow -= data.length;
    this.#output.frame(DATA, isLast ? END_STREAM : 0, stream.id, data);
    this.askFlush();
  }

  await(stream: OwnStream): void {
    this.#waiting.add(stream);
  }

  /** Continues the streams that wait in turns, one frame each. */
  sendWaiting(): void {
    for (const stream of this.#waiting) {
      if (this.sendWindow <= 0 || !this.canSend) return;
      this.#waiting.delete(stream);
      stream.send(1);
    }
  }

  /** Takes a stream that is over; its 'close' follows. */
  over(stream: OwnStream): void {
    this.#waiting.delete(stream);
    if (stream.isLocalEnded) {
      if (this.#ended === null) this.#ended = [stream];
      else this.#ended.push(stream);
      this.askFlush();
    } else if (this.#dropped !== null) this.#dropped.push(stream);
    else {
      this.#dropped = [stream];
      setImmediate(reportDropped, this);
    }
  }

  /**
   * Emits 'close' of streams that were given up, a turn later. By then the handlers listen that their requests began, maybe
   * in the same read.
   */
  reportDropped(): void {
    const dropped = this.#dropped ?? NONE;
    this.#dropped = null;
    this.#report(dropped);
  }

  /** Ends the socket after what was written, at the latest after `patienceMs`. */
  leave(patienceMs: number): void {
    this.#isLast = true;
    this.#patienceMs = patienceMs;
    this.askFlush();
  }

  /** Hot. Flushes at the end of this turn. */
  askFlush(): void {
    if (this.isHeld || this.#isFlushAsked) return;
    this.#isFlushAsked = true;
    process.nextTick(flushAsked, this);
  }

  /** Hot. Writes what was gathered to the socket. */
  flush(): void {
    this.#isFlushAsked = false;
    const socket = this.#socket;
    const isGone = socket.destroyed || socket.writableEnded;
    if (socket.writableLength > 0 && !isGone && !this.#isLast) return this.#holdBack();
    const ended = this.#ended ?? NONE;
    this.#ended = null;
    if (isGone) return this.#report(ended);
    const chunks = this.#output.drain();
    if (chunks.length === 0) this.#report(ended);
    else this.#write(chunks, ended);
    if (this.#isLast) this.#farewell();
  }

  #write(chunks: readonly Uint8Array[], ended: readonly OwnStream[]): void {
    const socket = this.#socket;
    const controlCount = this.#freshControlCount;
    this.#freshControlCount = 0;
    // Code that still holds the function after its call must not hold the streams with it.
    const waiting = { ended };
    const written = (): void => {
      const over = waiting.ended;
      waiting.ended = NONE;
      this.#written(over, controlCount);
    };
    const last = chunks.length - 1;
    if (last > 0) socket.cork();
    for (let i = 0; i < last; i++) socket.write(chunks[i] as Uint8Array);
    socket.write(chunks[last] as Uint8Array, written);
    if (last > 0) socket.uncork();
    this.#holdBack();
  }

  /** Stops reading while the kernel does not take what was written. */
  #holdBack(): void {
    const waitingBytes = this.#output.bytes + this.#socket.writableLength;
    if (this.#isBacklogged || waitingBytes <= BACKLOG_BYTES_MAX) return;
    if (this.#socket.writableLength === 0) return;
    this.#isBacklogged = true;
    this.#socket.pause();
    this.#onBacklog();
  }

  #written(ended: readonly OwnStream[], controlCount: number): void {
    const socket = this.#socket;
    this.#controlCount -= controlCount;
    this.#report(ended);
    if (this.#output.bytes > 0 && !this.isHeld) this.flush();
    this.sendWaiting();
    if (!this.#isBacklogged || socket.writableLength > 0) return;
    this.#isBacklogged = false;
    this.#onRelief();
  }

  #report(ended: readonly OwnStream[]): void {
    for (const stream of ended) {
      stream.emit('close');
      this.#onOver(stream);
    }
  }

  #farewell(): void {
    const socket = this.#socket;
    const destroy = (): void => void socket.destroy();
    // The peer is read, and waited for while it sends. Closing the socket earlier would answer with a reset, by which a peer
    // that is still reading would lose what the kernel has not delivered.
    let silence: NodeJS.Timeout | undefined;
    socket.end(() => {
      silence = setTimeout(destroy, FAREWELL_MS);
      silence.unref();
    });
    socket.on('data', () => silence?.refresh());
    socket.resume();
    setTimeout(destroy, this.#patienceMs).unref();
  }
}

function flushAsked(side: SendSide): void {
  side.flush();
}

function reportDropped(side: SendSide): void {
  side.reportDropped();
}
