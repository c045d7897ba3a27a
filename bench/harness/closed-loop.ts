// Sends requests over raw sockets, one at a time on each; yields nothing by itself.
import { type Socket, connect } from 'node:net';

/** A whole HTTP/1.1 request to POST `body`. */
export function postRequest(path: string, body: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

export type LoopResult = {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds from request to the end of its answer, sorted. */
  readonly latencies: readonly number[];
};

const HEAD_END = Buffer.from('\r\n\r\n');

/** Cuts answers with a Content-Length out of what a socket receives; bodies are counted, not kept. */
class AnswerCutter {
  #head: Buffer = Buffer.alloc(0);
  #left = -1;
  /** Of the answer that ended last. */
  status = '';

  /** Whether the answer is whole. Errors: one without a length. */
  push(chunk: Buffer): boolean {
    if (this.#left < 0) {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return false;
      const text = this.#head.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      if (length === undefined) throw new Error(`an answer without a length:\n${text}`);
      this.status = text.slice(9, 12);
      this.#left = Number(length) - (this.#head.length - end - HEAD_END.length);
    } else this.#left -= chunk.length;
    if (this.#left > 0) return false;
    this.#left = -1;
    this.#head = Buffer.alloc(0);
    return true;
  }
}

/** A connection on which one request after another is sent. */
export class Caller {
  readonly #socket: Socket;
  readonly #cutter = new AnswerCutter();
  #done: ((error?: Error) => void) | undefined;

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk) => {
      try {
        if (!this.#cutter.push(chunk)) return;
        const isOk = this.#cutter.status === '200';
        this.#settle(
          isOk ? undefined : new Error(`status ${this.#cutter.status}: ${String(chunk)}`),
        );
      } catch (error) {
        this.#settle(error as Error);
      }
    });
    this.#socket.on('error', (error) => this.#settle(error));
    this.#socket.on('close', () => this.#settle(new Error('the connection was closed')));
  }

  /** Milliseconds until the answer was there. Errors: anything but 200. */
  async call(request: Buffer): Promise<number> {
    const startMs = performance.now();
    await new Promise<void>((resolve, reject) => {
      this.#done = (error) => (error === undefined ? resolve() : reject(error));
      this.#socket.write(request);
    });
    return performance.now() - startMs;
  }

  end(): void {
    this.#done = undefined;
    this.#socket.destroy();
  }

  #settle(error: Error | undefined): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(error);
  }
}

/** As many requests as `callers` get answered within `seconds`, each made by `next` (undefined: no more). Errors: anything but 200. */
export async function closedLoop(
  port: number,
  callers: number,
  seconds: number,
  next: () => Buffer | undefined,
): Promise<LoopResult> {
  const latencies: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const run = async (): Promise<void> => {
    const caller = new Caller(port);
    try {
      while (performance.now() < endMs) {
        const request = next();
        if (request === undefined) return;
        latencies.push(await caller.call(request));
      }
    } finally {
      caller.end();
    }
  };
  await Promise.all(Array.from({ length: callers }, run));
  const lasted = (performance.now() - startMs) / 1000;
  return {
    requests: latencies.length,
    seconds: lasted,
    latencies: latencies.sort((a, b) => a - b),
  };
}
