import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { memoryOf, processorMsOf } from './process-use.ts';

/** Labels that the workflows ask for; act runs them on this machine. */
const HOST_PLATFORMS = ['ubuntu-latest', 'ubuntu-18.04', 'ubuntu-16.04', 'self-hosted'];
const MEMORY_POLL_MS = 10;
const NOWHERE = 'http://127.0.0.1:9';

export type ActOutcome = {
  readonly exitCode: number | null;
  readonly ms: number;
  /** Of act alone, without the steps it starts. */
  readonly peakMib: number;
  /** Of act and the steps. */
  readonly processorMs: number;
};

/** The program act: that of ACT, else the one on PATH; undefined when there is none. */
export function findAct(): string | undefined {
  const named = process.env['ACT'];
  if (named !== undefined && named !== '') return named;
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, 'act')).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Arguments with which act runs a workflow file on this machine, without containers and network. */
export function hostArguments(event: string, workflowFile: string): readonly string[] {
  const offline = ['--no-recurse', '--action-offline-mode', '--pull=false', '--no-cache-server'];
  const platforms = HOST_PLATFORMS.flatMap((label) => ['--platform', `${label}=-self-hosted`]);
  return [event, '--workflows', workflowFile, ...offline, ...platforms];
}

/** Its environment with a home of its own: no settings of the user, no cache of an earlier round. */
export function actEnvironment(home: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOME: home,
    XDG_CONFIG_HOME: home,
    XDG_CACHE_HOME: home,
    // Nobody listens there: it must not reach for actions on the network.
    HTTP_PROXY: NOWHERE,
    HTTPS_PROXY: NOWHERE,
  };
}

/**
 * Runs act in `cwd` from its start to its end; what it prints goes to `logFile`, or nowhere. It is
 * killed after `timeoutMs`, and its exit code is then null.
 */
export async function runAct(
  act: string,
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly logFile?: string | undefined;
    readonly timeoutMs?: number | undefined;
  },
): Promise<ActOutcome> {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-act-home-'));
  const output = openSync(options.logFile ?? '/dev/null', 'w');
  let peakMib = 0;
  let processorMs = 0;
  try {
    const start = performance.now();
    const child = spawn(act, [...args], {
      cwd: options.cwd,
      env: actEnvironment(home),
      stdio: ['ignore', output, output],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }),
      killSignal: 'SIGKILL',
    });
    const timer = setInterval(() => {
      peakMib = Math.max(peakMib, memoryOf(child.pid).peakMib);
      processorMs = Math.max(processorMs, processorMsOf(child.pid));
    }, MEMORY_POLL_MS);
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    const ms = performance.now() - start;
    clearInterval(timer);
    return { exitCode, ms, peakMib, processorMs };
  } finally {
    closeSync(output);
    rmSync(home, { recursive: true, force: true });
  }
}
