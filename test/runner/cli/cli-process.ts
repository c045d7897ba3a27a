import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';

const MAIN = join(import.meta.dirname, '../../../scripts/runner.mjs');

/** Holds the key of local secrets: one for all processes of a test file. */
const configHome = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
afterAll(() => rmSync(configHome, { recursive: true, force: true }));

/** A command line of the runner as a process of its own. */
export class CliProcess {
  stdout = '';
  stderr = '';
  /** Resolves with the exit code; a signal is its name. */
  readonly ended: Promise<number | string>;
  readonly #child: ChildProcess;
  #wake: (() => void)[] = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take('stdout', text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#take('stderr', text));
    this.ended = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        resolve(code ?? signal ?? 'unknown');
        this.#wakeAll();
      });
    });
  }

  /** Resolves once its output, of both kinds, has the text; rejects when it ended without. */
  async until(text: string): Promise<void> {
    while (!(this.stdout + this.stderr).includes(text)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(`ended without ${text}:\n${this.stdout}${this.stderr}`);
      }
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  interrupt(signal: NodeJS.Signals = 'SIGINT'): void {
    this.#child.kill(signal);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  #take(name: 'stdout' | 'stderr', text: string): void {
    this[name] += text;
    this.#wakeAll();
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}

/** Starts it in `workspace`; it is killed when the test ends. */
export function startCli(
  workspace: string,
  args: readonly string[],
  options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): CliProcess {
  const child = spawn(process.execPath, ['--', MAIN, ...args], {
    cwd: workspace,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      XDG_CONFIG_HOME: configHome,
      RUNNER_DISK_FLOOR_BYTES: '0',
      RUNNER_INSTALL_TOOLS: 'false',
      ...options.env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(options.input ?? '');
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return new CliProcess(child);
}

/** Runs it to its end. */
export async function runCli(
  ...parameters: Parameters<typeof startCli>
): Promise<{ readonly code: number | string; readonly stdout: string; readonly stderr: string }> {
  const cli = startCli(...parameters);
  const code = await cli.ended;
  return { code, stdout: cli.stdout, stderr: cli.stderr };
}
