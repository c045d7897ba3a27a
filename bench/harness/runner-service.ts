import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { memoryOf, processorMsOf, resetPeak } from '../../test/support/process-use.ts';

const COMPLETED = Buffer.from('event: run.completed\ndata: ');
const SUBSCRIBER_BUFFER_BYTES = 256 * 1024 * 1024;
const FRAME_END = Buffer.from('\n\n');

/** One run as its subscriber saw it. */
export type ServiceOutcome = {
  /** From the request to the end of the run in the stream. */
  readonly ms: number;
  readonly conclusion: string;
  readonly frames: number;
  readonly peakMib: number;
  /** Of the runner and the steps. */
  readonly processorMs: number;
};

/** The runner as a process of its own, with one reader of its event stream. */
export class RunnerService {
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #configHome: string;
  readonly #stream: http.IncomingMessage;
  #rest: Buffer = Buffer.alloc(0);
  #frames = 0;
  #onCompleted: ((data: string) => void) | undefined;

  private constructor(
    child: ChildProcess,
    port: number,
    configHome: string,
    stream: http.IncomingMessage,
  ) {
    this.#child = child;
    this.#port = port;
    this.#configHome = configHome;
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  /** Starts it on a free port and subscribes. `nodeFlags` go to Node, for a profile. */
  static async start(workspace: string, nodeFlags: readonly string[] = []): Promise<RunnerService> {
    const configHome = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
    const main = new URL('../../src/runner/main.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [...nodeFlags, main, workspace], {
      env: {
        ...process.env,
        PORT: '0',
        HOST: '127.0.0.1',
        XDG_CONFIG_HOME: configHome,
        RUNNER_DISK_FLOOR_BYTES: '0',
        // Every line is to arrive, also when the reader gets less of the processor than the runner.
        RUNNER_SUBSCRIBER_BUFFER_BYTES: String(SUBSCRIBER_BUFFER_BYTES),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const port = await portOf(child);
    const stream = await new Promise<http.IncomingMessage>((resolve, reject) => {
      http
        .get(`http://127.0.0.1:${port}/api/events`, { agent: false }, resolve)
        .on('error', reject);
    });
    return new RunnerService(child, port, configHome, stream);
  }

  /** Starts a run and resolves when the stream has told its end. One at a time. */
  async run(workflow: string, strategy?: string): Promise<ServiceOutcome> {
    const { pid } = this.#child;
    const processorBefore = processorMsOf(pid);
    resetPeak(pid);
    this.#frames = 0;
    const completed = new Promise<string>((resolve) => {
      this.#onCompleted = resolve;
    });
    const start = performance.now();
    const body = { workflow, ...(strategy === undefined ? {} : { sandbox: { strategy } }) };
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
    const data = JSON.parse(await completed) as { readonly run: { readonly conclusion: string } };
    const ms = performance.now() - start;
    await response.arrayBuffer();
    return {
      ms,
      conclusion: data.run.conclusion,
      frames: this.#frames,
      peakMib: memoryOf(pid).peakMib,
      processorMs: processorMsOf(pid) - processorBefore,
    };
  }

  async stop(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    await closed;
    this.#stream.destroy();
    rmSync(this.#configHome, { recursive: true, force: true });
  }

  /** Counts the frames (WHATWG HTML §9.2.6) and looks for the one that ends a run. */
  #take(chunk: Buffer): void {
    const text = this.#rest.byteLength === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (;;) {
      const end = text.indexOf(FRAME_END, start);
      if (end < 0) break;
      this.#frames += 1;
      start = end + FRAME_END.byteLength;
    }
    const whole = text.subarray(0, start);
    const at = whole.lastIndexOf(COMPLETED);
    if (at >= 0) {
      const from = at + COMPLETED.byteLength;
      this.#onCompleted?.(whole.toString('utf8', from, whole.indexOf(FRAME_END, from)));
    }
    this.#rest = text.subarray(start);
  }
}

/** The port that the log says it listens on. */
async function portOf(child: ChildProcess): Promise<number> {
  const { stderr } = child;
  if (stderr === null) throw new Error('the runner has no log');
  const lines = createInterface({ input: stderr });
  try {
    for await (const line of lines) {
      const { msg, port } = JSON.parse(line) as { readonly msg?: string; readonly port?: number };
      if (msg === 'ready' && port !== undefined) return port;
    }
  } finally {
    lines.close();
    stderr.resume();
  }
  throw new Error('the runner did not start');
}
