/**
 * Starts the three services of one machine as child processes: `npm run start:all [project directory]`.
 *
 * Each keeps its own settings, and gets no secrets of the others; only ports that would meet get another default. Without DATABASE_URL the
 * authorization and the notification service start an embedded PostgreSQL each, under GATEWAY_DATA_DIR
 * and NOTIFY_DATA_DIR: such a server lives and dies with the process that owns it, so that a shared one
 * would tie the fate of one service to the other. With DATABASE_URL both use that one, in schemas of
 * their own.
 *
 * SIGTERM, SIGINT, SIGHUP and the end of npm stop all of them in order; so does the end of this process, by SIGKILL too, and
 * that of a service which ends on its own.
 * Exit codes: 0 after a graceful stop, else that of the first service that failed (1 for a signal).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { prettyFactory } from 'pino-pretty';
import { secretVariablesIn } from '../src/config/load-options.ts';
import { OPTIONS } from '../src/config/options.ts';
import { NOTIFY_OPTIONS } from '../src/notify/service/settings.ts';
import { secretVariables } from '../src/runner/secrets/own-secrets.ts';
import { hideFromOtherProcesses } from '../src/shared/process/process-control.ts';
import { onStopSignals } from '../src/shared/process/stop-signals.ts';

/** Ports besides the defaults of the services: their metrics ports would be the same, or none. */
const DEFAULTS: Readonly<Record<string, string>> = {
  NOTIFY_METRICS_PORT: '9091',
  RUNNER_METRICS_PORT: '9092',
};
const PROGRAMS = [
  { name: 'authz', path: '../src/main.ts', secrets: () => secretVariablesIn(OPTIONS, process.env) },
  {
    name: 'notify',
    path: '../src/notify/main.ts',
    secrets: () => secretVariablesIn(NOTIFY_OPTIONS, process.env),
  },
  {
    name: 'runner',
    path: '../src/runner/main.ts',
    secrets: () => secretVariables(process.env),
  },
] as const;
const EXIT_FAILURE = 1;

type Service = {
  readonly name: string;
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
};

const pretty = process.stderr.isTTY ? prettyFactory({ translateTime: false }) : undefined;
let exitCode = 0;
let isStopping = false;

// Steps of the runner have the same user.
hideFromOtherProcesses();
const services: readonly Service[] = PROGRAMS.map(({ name, path, secrets }) => {
  const program = fileURLToPath(new URL(path, import.meta.url));
  const more = name === 'runner' ? process.argv.slice(2) : [];
  const child = spawn(process.execPath, [program, ...more], {
    env: { ...DEFAULTS, ...environmentWith(secrets()) },
    // By the channel it notices that this process was killed, and stops.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // A group of its own: Ctrl-C reaches this process alone, which stops the others once and in order.
    detached: true,
  });
  prefixLines(name, child.stdout, process.stdout);
  prefixLines(name, child.stderr, process.stderr);
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      tell(`${name} cannot be started: ${error.message}`);
      endOf(name, EXIT_FAILURE, null);
      resolve();
    });
    child.once('exit', (code, signal) => {
      endOf(name, code, signal);
      resolve();
    });
  });
  return { name, child, ended };
});

tell(`started by process ${process.pid}, which takes the signals for all`);
onStopSignals({
  stop: (cause) => {
    tell(`${cause}: stopping`);
    stop('SIGTERM');
  },
  // Which ends the services at once.
  force: (signal) => {
    tell(`${signal} again: ending at once`);
    signalAll('SIGTERM');
  },
});
await Promise.all(services.map(({ ended }) => ended));
process.exitCode = exitCode;

/**
 * The environment without the secrets of other services than the one that `own` are of. An empty variable
 * counts as unset, here as in the services.
 */
function environmentWith(own: readonly string[]): NodeJS.ProcessEnv {
  const foreign = PROGRAMS.flatMap(({ secrets }) => secrets()).filter(
    (name) => !own.includes(name),
  );
  return Object.fromEntries(
    Object.entries(process.env).filter(([name, value]) => value !== '' && !foreign.includes(name)),
  );
}

function prefixLines(name: string, from: Readable | null, to: NodeJS.WritableStream): void {
  if (from === null) return;
  const prefix = `${name.padEnd(6)} | `;
  createInterface({ input: from }).on('line', (line) => {
    const text = pretty !== undefined && line.startsWith('{') ? pretty(line) : `${line}\n`;
    to.write(prefix + text);
  });
}

function tell(text: string): void {
  process.stderr.write(`all    | ${text}\n`);
}

function endOf(name: string, code: number | null, signal: NodeJS.Signals | null): void {
  const isAsked = isStopping;
  if (!isAsked) {
    tell(`${name} ended with ${code ?? signal}; stopping the others`);
    stop('SIGTERM');
  }
  // Whoever ends unasked has failed, whatever it says.
  // Asked before it could hear: nothing had begun.
  const isFine = isAsked && (code === 0 || signal === 'SIGTERM');
  const failure = isFine ? 0 : (code ?? EXIT_FAILURE) || EXIT_FAILURE;
  if (exitCode === 0) exitCode = failure;
}

function stop(signal: NodeJS.Signals): void {
  isStopping = true;
  signalAll(signal);
}

function signalAll(signal: NodeJS.Signals): void {
  for (const { child } of services) {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  }
}
