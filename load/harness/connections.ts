import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What the process that opens connections is told. */
export type ConnectionCommand = {
  readonly port: number;
  readonly token: string;
  readonly path: string;
  readonly bodies: readonly string[];
  readonly connections: number;
  /** Answers after which a connection is replaced by a new one. */
  readonly requestsEach: number;
  /** All are opened at once, each asks once and stays, and none is replaced; else no more than a few hundred are opening at a time. */
  readonly isBurst?: boolean | undefined;
  readonly seconds: number;
};

export type Latencies = {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

export type ConnectionReport = {
  readonly perSecond: number;
  readonly opened: number;
  readonly failed: number;
  /** Answers that took more than 2 s. */
  readonly timedOut: number;
  /** Of a burst those that had no answer at the end. */
  readonly unanswered: number;
  /** From before a connection is opened to its first answer. */
  readonly first: Latencies;
  /** Of answers on a connection that had one before. */
  readonly later: Latencies;
};

/** A process that opens connections and asks on them. */
export class ConnectionClients {
  readonly #child: ChildProcess = fork(
    fileURLToPath(new URL('../connection-clients.ts', import.meta.url)),
  );

  /** One measurement at a time. Errors: rejects when the process ends before it reports. */
  async press(command: ConnectionCommand): Promise<ConnectionReport> {
    const lost = new AbortController();
    const onExit = (): void => lost.abort(new Error('the process that opens connections ended'));
    this.#child.once('exit', onExit);
    this.#child.send(command);
    const [report] = await once(this.#child, 'message', { signal: lost.signal });
    this.#child.off('exit', onExit);
    return report as ConnectionReport;
  }

  close(): void {
    this.#child.disconnect();
  }
}
