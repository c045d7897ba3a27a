import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { atEnd } from './cleanup.ts';
import type { Turn } from './in-turns.ts';
import { OPTIONS } from './options.ts';

/** What the generator sends, and how. */
export type Load = {
  readonly protocol: 'http1' | 'grpc';
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bodies to send in turn: base64, in gRPC's envelope where that is the protocol. */
  readonly bodies: readonly string[];
  /** Operations of each body. */
  readonly operations: readonly number[];
  /** Requests at once: connections of HTTP/1.1, streams of one connection of HTTP/2. */
  readonly callers: number;
  readonly seconds: number;
  /** Requests a second, due at even times; 0: each caller asks again once it is answered. */
  readonly perSecond: number;
};

/** What a turn came to; `problem` says what was wrong with the first bad answer. */
export type Counted = Omit<Turn, 'cpuSeconds'> & { readonly problem: string | undefined };

/** A load generator in a process of its own, whose work counts for no contestant. */
export class Generator {
  readonly #child: ChildProcess = fork(new URL('generator-process.ts', import.meta.url), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });

  readonly #gone = once(this.#child, 'exit').then(() => {
    throw new Error('the load generator ended');
  });

  constructor() {
    this.#gone.catch(() => undefined);
    atEnd(() => this.#child.kill());
  }

  /** One turn; `cpuSeconds` reads the CPU time so far of what is loaded. Errors: throws when an answer is missing or not a good one. */
  async turn(
    load: Omit<Load, 'seconds' | 'perSecond'> & { readonly perSecond?: number },
    cpuSeconds: () => number,
  ): Promise<Turn> {
    const before = cpuSeconds();
    this.#child.send({ perSecond: 0, seconds: OPTIONS.seconds, ...load });
    const [counted] = (await Promise.race([once(this.#child, 'message'), this.#gone])) as [Counted];
    const { problem, ...turn } = counted;
    if (problem !== undefined) throw new Error(problem);
    return { ...turn, cpuSeconds: cpuSeconds() - before };
  }
}

/** Bodies of HTTP/1.1 as the generator takes them. */
export function jsonBodies(messages: readonly object[]): readonly string[] {
  return messages.map((message) => Buffer.from(JSON.stringify(message)).toString('base64'));
}

/** Messages in the envelope of gRPC, uncompressed, as the generator takes them. */
export function grpcBodies(messages: readonly Uint8Array[]): readonly string[] {
  return messages.map((message) => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    return Buffer.concat([head, message]).toString('base64');
  });
}
