// Loads an HTTP/2 server; yields nothing by itself.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpuSeconds } from './service.ts';

/** What one process of the generator does. */
export type Http2Job = {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** base64 of whole bodies, envelopes included. */
  readonly bodies: readonly string[];
  readonly hasTrailers: boolean;
  readonly connections: number;
  /** At once on each connection, in a closed loop. */
  readonly streams: number;
  readonly seconds: number;
  /** 0: as many as are answered. */
  readonly perSecond: number;
};

/** What it counted. A latency is that of an answer, in an open loop from when the request was due. */
export type Http2Counted = {
  readonly count: number;
  readonly lastedS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly problem: string | undefined;
};

export type Http2Rate = {
  readonly perSecond: number;
  /** Of the server; NaN where /proc is missing. */
  readonly perCpuSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

/** A generator in a process of its own, so that its work is none of the benchmark's or the server's. */
export class Http2Generator {
  readonly #child: ChildProcess = fork(new URL('http2-generator.ts', import.meta.url), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });

  /** Runs a job against the server `pid`. Errors: throws when an answer is missing or no good one. */
  async measure(job: Http2Job, pid: number): Promise<Http2Rate> {
    const before = await cpuSeconds(pid);
    this.#child.send(job);
    const [counted] = (await once(this.#child, 'message')) as [Http2Counted];
    if (counted.problem !== undefined) throw new Error(counted.problem);
    const { count, lastedS, p50Ms, p99Ms } = counted;
    const cpuS = (await cpuSeconds(pid)) - before;
    return {
      perSecond: Math.round(count / lastedS),
      perCpuSecond: Math.round(count / cpuS),
      p50Ms: Math.round(p50Ms * 1000) / 1000,
      p99Ms: Math.round(p99Ms * 1000) / 1000,
    };
  }

  stop(): void {
    this.#child.kill();
  }
}

/** A message in the envelope of gRPC, uncompressed. */
export function enveloped(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(5 + message.length);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, 5);
  return bytes;
}
