import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { StartMessage, SupervisorReply, SupervisorRequest } from './supervisor-messages.ts';

export type ChannelStreams = {
  readonly input: Writable & Referenced;
  readonly output: Readable & Referenced;
};
type Referenced = { ref?(): unknown; unref?(): unknown };

export type ProcessEnd = { readonly code: number | null; readonly signal: string | null };

/** A process that a supervisor has started. */
export type StartedProcess = {
  readonly pid: number;
  /** Never rejects. SIGKILL when the supervisor ended first, and nobody knows. */
  readonly end: Promise<ProcessEnd>;
};

type StartAnswer = StartedProcess | { readonly error: string };
export type ClearCounts = { readonly killed: number; readonly left: number };

/** What is said when the other end is not there any more. */
const GONE = 'ESRCH';

/**
 * The runner's end of the talk with one supervisor. Holds the event loop only while an answer or the end
 * of a process is waited for.
 */
export class SupervisorChannel {
  readonly #streams: ChannelStreams;
  readonly #starts = new Map<number, (answer: StartAnswer) => void>();
  readonly #ends = new Map<number, (end: ProcessEnd) => void>();
  readonly #clears = new Map<number, (counts: ClearCounts | undefined) => void>();
  readonly #ready = Promise.withResolvers<boolean>();
  readonly #closed = Promise.withResolvers<void>();
  #isReady = false;
  #isClosed = false;
  #lastId = 0;

  constructor(streams: ChannelStreams) {
    this.#streams = streams;
    const { input, output } = streams;
    input.on('error', () => this.#close());
    output.on('error', () => this.#close());
    output.once('close', () => this.#close());
    createInterface({ input: output }).on('line', (line) => {
      this.#take(JSON.parse(line) as SupervisorReply);
    });
    this.#reference();
  }

  /** False when it ended before it could begin. */
  get ready(): Promise<boolean> {
    return this.#ready.promise;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Never rejects; the error is the system's name of it, ESRCH when the supervisor is gone. */
  start(message: Omit<StartMessage, 'type' | 'id'>): Promise<StartAnswer> {
    return new Promise((resolve) => {
      const id = this.#ask((next) => ({ ...message, type: 'start', id: next }));
      if (id === undefined) resolve({ error: GONE });
      else this.#starts.set(id, resolve);
      this.#reference();
    });
  }

  /** Undefined when the supervisor is gone. */
  clear(sparesStarted: boolean): Promise<ClearCounts | undefined> {
    return new Promise((resolve) => {
      const id = this.#ask((next) => ({ type: 'clear', id: next, sparesStarted }));
      if (id === undefined) resolve(undefined);
      else this.#clears.set(id, resolve);
      this.#reference();
    });
  }

  /** The supervisor kills what is below it, and ends. */
  end(): void {
    const { input } = this.#streams;
    input.end(() => input.destroy());
  }

  #ask(message: (id: number) => SupervisorRequest): number | undefined {
    if (this.#isClosed) return undefined;
    this.#lastId += 1;
    this.#streams.input.write(`${JSON.stringify(message(this.#lastId))}\n`);
    return this.#lastId;
  }

  #take(reply: SupervisorReply): void {
    switch (reply.type) {
      case 'ready':
        this.#isReady = true;
        this.#ready.resolve(true);
        break;
      case 'started': {
        const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
        this.#ends.set(reply.id, resolve);
        taken(this.#starts, reply.id)?.({ pid: reply.pid, end: promise });
        break;
      }
      case 'refused':
        taken(this.#starts, reply.id)?.({ error: reply.error });
        break;
      case 'ended':
        taken(this.#ends, reply.id)?.({ code: reply.code, signal: reply.signal });
        break;
      case 'cleared':
        taken(this.#clears, reply.id)?.({ killed: reply.killed, left: reply.left });
        break;
    }
    this.#reference();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#streams.input.destroy();
    this.#streams.output.destroy();
    this.#ready.resolve(false);
    for (const id of this.#starts.keys()) taken(this.#starts, id)?.({ error: GONE });
    for (const id of this.#ends.keys()) taken(this.#ends, id)?.({ code: null, signal: 'SIGKILL' });
    for (const id of this.#clears.keys()) taken(this.#clears, id)?.(undefined);
    this.#closed.resolve();
  }

  #reference(): void {
    const isWaiting = this.#starts.size + this.#ends.size + this.#clears.size > 0;
    for (const stream of [this.#streams.input, this.#streams.output]) {
      if (isWaiting || !this.#isReady) stream.ref?.();
      else stream.unref?.();
    }
  }
}

function taken<T>(map: Map<number, T>, id: number): T | undefined {
  const value = map.get(id);
  map.delete(id);
  return value;
}
