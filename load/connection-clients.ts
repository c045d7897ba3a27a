/**
 * Opens connections at a service and asks on them, from a process of its own. Started by harness/connections.ts,
 * which it talks to over the channel of fork.
 */
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionCommand, ConnectionReport, Latencies } from './harness/connections.ts';
import { requestBytes } from './harness/raw-http.ts';

const HEAD_END = '\r\n\r\n';
/** What wrk calls a time-out. */
const TIMEOUT_MS = 2_000;
/** Connections without a first answer at a time: more of them would wait for this process, not for the service. */
const OPENING_MAX = 250;

process.on('message', (command: ConnectionCommand) => {
  void new Press(command).run().then((report) => process.send?.(report));
});
process.on('disconnect', () => process.exit(0));

/** Keeps `connections` open once they are, each with one request at a time, replaced after `requestsEach` answers. */
class Press {
  readonly #command: ConnectionCommand;
  readonly #requests: readonly Buffer[];
  readonly #first = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
  readonly #later = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
  /** Of a burst. */
  readonly #staying = new Set<Socket>();
  #next = 0;
  #opened = 0;
  #failed = 0;
  #timedOut = 0;
  /** Connections, and those of them without an answer. */
  #open = 0;
  #opening = 0;
  #isEnding = false;

  constructor(command: ConnectionCommand) {
    this.#command = command;
    const { path, bodies, token } = command;
    this.#requests = bodies.map((body) => requestBytes(path, Buffer.from(body), token));
  }

  async run(): Promise<ConnectionReport> {
    const { seconds } = this.#command;
    const startMs = performance.now();
    this.#fill();
    await this.#pressed(startMs + seconds * 1000);
    this.#isEnding = true;
    const lastedS = (performance.now() - startMs) / 1000;
    const answered = this.#first.count + this.#later.count;
    const unanswered = this.#command.isBurst === true ? this.#opening : 0;
    for (const socket of this.#staying) socket.destroy();
    while (this.#open > 0) await sleep(5);
    return {
      perSecond: Math.round(answered / lastedS),
      opened: this.#opened,
      failed: this.#failed,
      timedOut: this.#timedOut,
      unanswered,
      first: latenciesOf(this.#first),
      later: latenciesOf(this.#later),
    };
  }

  /** Until then, or until every connection of a burst has its answer. */
  async #pressed(untilMs: number): Promise<void> {
    const { isBurst = false } = this.#command;
    while (performance.now() < untilMs && !(isBurst && this.#opening === 0)) await sleep(20);
  }

  #fill(): void {
    const { connections, isBurst = false } = this.#command;
    const openingMax = isBurst ? connections : OPENING_MAX;
    while (!this.#isEnding && this.#open < connections && this.#opening < openingMax) this.#add();
  }

  #add(): void {
    const { port, requestsEach, isBurst = false } = this.#command;
    this.#open += 1;
    this.#opening += 1;
    this.#opened += 1;
    let sentMs = performance.now();
    let count = 0;
    let text = '';
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('latin1');
    if (isBurst) this.#staying.add(socket);
    const ask = (): void => {
      socket.write(this.#requests[this.#next++ % this.#requests.length] as Buffer);
    };
    socket.once('connect', ask);
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!isWhole(text)) return;
      const nowMs = performance.now();
      this.#answered(text, nowMs - sentMs, count === 0);
      text = '';
      count += 1;
      if (isBurst) return;
      if (count === 1) this.#fill();
      if (this.#isEnding || count >= requestsEach) socket.destroy();
      else {
        sentMs = nowMs;
        ask();
      }
    });
    socket.once('error', () => (this.#failed += 1));
    socket.once('close', (hadError) => {
      if (isBurst && count === 0 && !hadError && !this.#isEnding) this.#failed += 1;
      this.#open -= 1;
      if (count === 0) this.#opening -= 1;
      if (isBurst) this.#staying.delete(socket);
      else this.#fill();
    });
  }

  /** Of a new connection the time counts from before it is opened. */
  #answered(text: string, tookMs: number, isFirst: boolean): void {
    if (!text.startsWith('HTTP/1.1 200')) this.#failed += 1;
    if (tookMs > TIMEOUT_MS) this.#timedOut += 1;
    if (isFirst) this.#opening -= 1;
    (isFirst ? this.#first : this.#later).record(Math.max(1, Math.round(tookMs * 1e6)));
  }
}

function latenciesOf(recorded: ReturnType<typeof createHistogram>): Latencies {
  const ms = (ns: number): number => Math.round(ns / 1e4) / 100;
  return {
    count: recorded.count,
    p50Ms: ms(recorded.percentile(50)),
    p99Ms: ms(recorded.percentile(99)),
    maxMs: ms(recorded.count === 0 ? 0 : recorded.max),
  };
}

function isWhole(text: string): boolean {
  const head = text.indexOf(HEAD_END);
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  return length === undefined || text.length >= head + HEAD_END.length + Number(length);
}
