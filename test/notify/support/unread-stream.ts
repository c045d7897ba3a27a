import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type NotifyProcess, notify } from './notify-process.ts';
import { poll } from './poll.ts';

/** More than the kernel and the stream's buffer hold; sent long before a client that takes nothing is given up. */
const ROUND = 40;
const BODY = 'x'.repeat(16_000);
/** Connections without a drop, at most. */
const ROUNDS_MAX = 20;

/** A stream whose client reads when it is told to. */
export class UnreadStream {
  socket!: Socket;
  /** What the client has read on this connection. */
  text = '';
  /** Notifications sent to it: t1, t2, … by their titles. */
  total = 0;
  #id: unknown;
  readonly #service: NotifyProcess;
  readonly #url: URL;

  private constructor(service: NotifyProcess, url: URL) {
    this.#service = service;
    this.#url = url;
  }

  /**
   * A stream at `url` of which notifications of `user` were dropped, `countMin` at least, since its client read no more than its
   * opening. Where a hint of PostgreSQL overtakes a notification the stream is served from the store and drops nothing until its
   * client reads: then another connection is tried. To read on this one would not do: the kernel's buffers grow with what is read.
   */
  static async dropping(
    service: NotifyProcess,
    url: URL,
    countMin: number,
    user: Readonly<Record<string, unknown>> = {},
  ): Promise<UnreadStream> {
    const stream = new UnreadStream(service, url);
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await stream.#open();
      while (stream.total < ROUND) {
        await notify(service, { ...user, title: `t${++stream.total}`, body: BODY });
        if (stream.events('event_queue_full').length >= countMin) return stream;
      }
      stream.socket.destroy();
    }
    throw new Error(
      `nothing was dropped on ${ROUNDS_MAX} connections, ${ROUND} notifications on each`,
    );
  }

  /** What the service logged of this connection. */
  events(msg: string) {
    return this.#service.events(msg).filter((line) => line['connection_id'] === this.#id);
  }

  /** Resolves when the client has read the last notification; it reads already. */
  async untilLast(): Promise<void> {
    // Whether it is there, and not the text: what is looked at is kept for the message, and it may have megabytes.
    await poll(() => this.text.includes(`"title":"t${this.total}"`)).toBe(true);
  }

  async #open(): Promise<void> {
    this.text = '';
    this.total = 0;
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    this.socket = socket;
    onTestFinished(() => void socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    socket.write(`GET ${this.#url.pathname}${this.#url.search} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await poll(() => this.text).toMatch(/event: open\ndata: .*\n\n/);
    this.#id = /"connection_id":"([^"]*)"/.exec(this.text)?.[1];
    socket.pause();
  }
}
