import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type NotifyProcess, notify } from './notify-process.ts';
import { poll } from './poll.ts';

/** More than the kernel and the stream's buffer hold; sent long before a client that takes nothing is given up. */
const ROUND = 40;
const BODY = 'x'.repeat(16_000);
/** Rounds without a drop, at most: the client keeps all that it reads. */
const ROUNDS_MAX = 50;

/** A stream whose client reads when it is told to. */
export class UnreadStream {
  readonly socket: Socket;
  /** What the client has read. */
  text = '';
  /** Notifications sent to it: t1, t2, … by their titles. */
  total = 0;
  readonly #service: NotifyProcess;

  constructor(service: NotifyProcess, url: URL) {
    this.#service = service;
    this.socket = connect(Number(url.port), url.hostname);
    onTestFinished(() => void this.socket.destroy());
    this.socket.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    this.socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: x\r\n\r\n`);
  }

  /**
   * Sends notifications of `user` without reading until `countMin` were dropped. Where a hint of PostgreSQL overtakes a notification
   * the stream is served from the store, and drops nothing until its client has read: then it reads all, and another round begins.
   */
  async dropSome(countMin: number, user: Readonly<Record<string, unknown>> = {}): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      this.socket.pause();
      for (let sent = 0; sent < ROUND; sent++) {
        await notify(this.#service, { ...user, title: `t${++this.total}`, body: BODY });
        if (this.#service.events('event_queue_full').length >= countMin) return;
      }
      this.socket.resume();
      await this.untilLast();
    }
    throw new Error(`nothing was dropped in ${ROUNDS_MAX} rounds of ${ROUND} notifications`);
  }

  /** Resolves when the client has read the last notification; it reads already. */
  async untilLast(): Promise<void> {
    // Whether it is there, and not the text: what is looked at is kept for the message, and it may have megabytes.
    await poll(() => this.text.includes(`"title":"t${this.total}"`)).toBe(true);
  }
}
