import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type InstanceOptions = {
  /** The checkout whose src/main.ts is started. */
  readonly tree: string;
  readonly dataDirectory: string;
  readonly databaseUrl: string;
  readonly token: string;
  readonly adminSecret: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
};

/** Loads the sources of this checkout in half of the time; those of another one as ever. */
const SOURCE_CACHE = fileURLToPath(new URL('../../scripts/source-cache.mjs', import.meta.url));
const START_TIMEOUT_MS = 60_000;
const LINES_KEPT = 60;

/** One process of the authorization service. */
export class InstanceProcess {
  readonly #child: ChildProcess;
  readonly #last: string[] = [];
  readonly exited: Promise<void>;
  /** Settles with the ports. Rejects with the last lines of the log when it ends first. */
  readonly ready: Promise<{ readonly baseUrl: string; readonly metricsUrl: string }>;

  constructor(options: InstanceOptions) {
    const { tree, dataDirectory, databaseUrl, token, adminSecret, env } = options;
    this.#child = spawn(process.execPath, ['--import', SOURCE_CACHE, 'src/main.ts'], {
      cwd: tree,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        DEBUG_ASSERTIONS: '1',
        GATEWAY_DATA_DIR: dataDirectory,
        DATABASE_URL: databaseUrl,
        GATEWAY_HOST: '127.0.0.1',
        GATEWAY_CONNECT_PORT: '0',
        GATEWAY_METRICS_PORT: '0',
        GATEWAY_SERVICE_AUTH_TOKENS: token,
        GATEWAY_ADMIN_API_SECRET: adminSecret,
        ...env,
      },
    });
    this.exited = new Promise((done) => this.#child.once('exit', () => done()));
    this.ready = this.#readyPorts();
    // Whoever waits for it is told; a start that nobody waits for may fail.
    this.ready.catch(() => undefined);
  }

  get isRunning(): boolean {
    const { exitCode, signalCode, pid } = this.#child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  /** The last lines of its log. */
  get lastLines(): readonly string[] {
    return this.#last;
  }

  /** Does nothing to one that has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child.kill(signal);
  }

  /** Ends it by `signal` and waits until it is gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.signal(signal);
    await this.exited;
  }

  #readyPorts(): Promise<{ readonly baseUrl: string; readonly metricsUrl: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{
      readonly baseUrl: string;
      readonly metricsUrl: string;
    }>();
    const fail = (what: string): void => {
      reject(new Error(`an instance ${what}:\n${this.#last.join('\n')}`));
    };
    const timer = setTimeout(() => fail('was not ready in time'), START_TIMEOUT_MS);
    const { stderr } = this.#child;
    if (stderr === null) throw new Error('stderr of an instance is a pipe');
    createInterface({ input: stderr }).on('line', (line) => {
      this.#last.push(line);
      if (this.#last.length > LINES_KEPT) this.#last.shift();
      if (!line.startsWith('{') || !line.includes('"ready"')) return;
      const entry = JSON.parse(line) as { msg?: string; port?: number; metrics_port?: number };
      if (entry.msg !== 'ready') return;
      clearTimeout(timer);
      const [baseUrl, metricsUrl] = [entry.port, entry.metrics_port].map(
        (port) => `http://127.0.0.1:${port}`,
      ) as [string, string];
      resolve({ baseUrl, metricsUrl });
    });
    this.#child.once('exit', (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${code ?? signal}`);
    });
    return promise;
  }
}
