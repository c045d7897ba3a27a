import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished, vi } from 'vitest';
import { runCommandLine } from '../../../src/runner/cli/command-line.ts';
import type { LocalRunner } from '../../../src/runner/cli/local-runner.ts';
import { startSupervision } from '../../../src/runner/wiring/early-supervision.ts';
import { forecastOf } from '../../../src/runner/wiring/forecast.ts';
import { openLocalActions } from '../../../src/runner/wiring/local-actions.ts';
import { openLocalLink, openLocalSecrets } from '../../../src/runner/wiring/local-link.ts';
import { planStart } from '../../../src/runner/wiring/start-plan.ts';
import { openStoredRuns } from '../../../src/runner/wiring/stored-runs.ts';

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

  /** Closes its standard output. */
  stopReading(): void {
    this.#child.stdout?.destroy();
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

function environment(): Record<string, string | undefined> {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    XDG_CONFIG_HOME: configHome,
    RUNNER_DISK_FLOOR_BYTES: '0',
    RUNNER_INSTALL_TOOLS: 'false',
  };
}

/** Starts it in `workspace`; it is killed when the test ends. */
export function startCli(
  workspace: string,
  args: readonly string[],
  options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): CliProcess {
  const child = spawn(process.execPath, ['--', MAIN, ...args], {
    cwd: workspace,
    env: { ...environment(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(options.input ?? '');
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return new CliProcess(child);
}

type Ended = {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs it to its end. */
export async function runCli(...parameters: Parameters<typeof startCli>): Promise<Ended> {
  const cli = startCli(...parameters);
  const code = await cli.ended;
  return { code, stdout: cli.stdout, stderr: cli.stderr };
}

/** As src/runner/cli-main.ts has it, but the process of the tests goes on to be read by others. */
const LOCAL: LocalRunner = {
  conceal: () => false,
  serve: () => Promise.reject(new Error('a server has a process of its own')),
  openLink: (context) => openLocalLink(context, startSupervision()),
  openSecrets: openLocalSecrets,
  planStart,
  forecast: forecastOf,
  openStoredRuns,
  openActions: openLocalActions,
};

/**
 * The same in this process, in a tenth of the time. Not for signals, standard input, colours, paths below the working
 * directory and wrong settings, all of which are of the process.
 */
export async function callCli(
  workspace: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  const listeners = process.stdout.listeners('error');
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
      return true;
    }),
  );
  try {
    const settings = { ...environment(), RUNNER_WORKSPACE: workspace, ...env };
    const code = await runCommandLine(args, settings, LOCAL);
    // Lines are written at the end of a turn.
    await new Promise((resolve) => setImmediate(resolve));
    return { code, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    for (const listener of process.stdout.listeners('error')) {
      if (!listeners.includes(listener)) process.stdout.off('error', listener as () => void);
    }
  }
}
