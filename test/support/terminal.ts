import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const END_TIMEOUT_MS = 10_000;

/**
 * A shell that stops at the first command that fails, and gets its commands as from a reader who types them. It knows
 * nothing of the user: an empty home, no startup files, and of the environment the PATH and what it is given.
 */
export class Terminal {
  /** What was printed so far, errors included. */
  output = '';
  readonly #shell: ChildProcess;
  readonly #ended: Promise<number | null>;

  private constructor(home: string, env: Readonly<Record<string, string>>) {
    // Bash takes a socket for its input as a remote login where SHLVL is unset, and would read its startup file.
    this.#shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-s'], {
      env: { PATH: process.env['PATH'], HOME: home, ...env },
      stdio: 'pipe',
      // A group of its own, to end all that was started in it.
      detached: true,
    });
    const take = (text: string): void => {
      this.output += text;
    };
    this.#shell.stdout?.setEncoding('utf8').on('data', take);
    this.#shell.stderr?.setEncoding('utf8').on('data', take);
    this.#ended = new Promise((resolve) => this.#shell.once('close', resolve));
  }

  /** Opens one; it and everything that runs in it is ended with the test. */
  static async open(env: Readonly<Record<string, string>> = {}): Promise<Terminal> {
    const home = await mkdtemp(join(tmpdir(), 'gatehouse-home-'));
    const terminal = new Terminal(home, env);
    onTestFinished(async () => {
      await terminal.#end();
      await rm(home, { recursive: true, force: true });
    });
    return terminal;
  }

  /** Gives it commands; does not wait for them. */
  type(commands: string): void {
    this.#shell.stdin?.write(`${commands}\n`);
  }

  /** Waits until all commands have ended; the exit code. */
  async exit(): Promise<number | null> {
    this.#shell.stdin?.end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.#signal('SIGTERM');
    const timer = setTimeout(() => this.#signal('SIGKILL'), END_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-(this.#shell.pid ?? 0), signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
