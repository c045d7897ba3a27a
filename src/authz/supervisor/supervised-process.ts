import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url));
/** First descriptor after standard input, output and error and the channel to the supervisor. */
const FIRST_FD = 4;

export type ProcessOptions = {
  /** Name for people: `process` of its log lines. */
  readonly name: string;
  /** Settings beside those of this process; '' unsets one. */
  readonly env: Readonly<Record<string, string>>;
  /** Sockets that listen: its own first. */
  readonly sockets: readonly number[];
  readonly metricsSocket: number;
};

/** One instance as a child process. */
export class SupervisedProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  /** Settles when it accepts; rejects when it ended before. */
  readonly ready: Promise<void>;
  /** Settles with how it ended. */
  readonly ended: Promise<number | NodeJS.Signals>;

  constructor(options: ProcessOptions) {
    const { name, env, sockets, metricsSocket } = options;
    this.name = name;
    const passed = [...sockets, metricsSocket];
    const own = {
      GATEWAY_LISTEN_FDS: sockets.map((_, n) => FIRST_FD + n).join(','),
      GATEWAY_METRICS_LISTEN_FD: String(FIRST_FD + sockets.length),
      GATEWAY_INSTANCE_NAME: name,
    };
    const settings = Object.entries({ ...process.env, ...env, ...own });
    this.#child = spawn(process.execPath, [MAIN], {
      env: Object.fromEntries(settings.filter(([, value]) => value !== '')),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...passed],
      // A group of its own: Ctrl-C reaches the supervisor alone, which stops all in order.
      detached: true,
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(code ?? signal ?? 1));
      this.#child.once('error', () => resolve(1));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.once('message', () => resolve());
      void this.ended.then((how) => reject(new Error(`instance ${name} ended with ${how}`)));
    });
    this.ready.catch(() => undefined); // the caller that waits for it gets the error
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child.kill(signal);
  }
}
