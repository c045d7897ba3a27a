import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A line of a service's log, parsed. */
export type LogLine = { readonly msg?: string; readonly level?: string } & Readonly<
  Record<string, unknown>
>;

/** A service as a child process whose log is read from its stderr. */
export type ChildService<Ready> = {
  readonly child: ChildProcess;
  /** Everything on stderr so far, line by line. */
  readonly rawLog: readonly string[];
  /** Of these the lines that are JSON. */
  readonly log: readonly LogLine[];
  /** Settles with the exit code when the process has ended (null: by a signal). */
  readonly exited: Promise<number | null>;
  /** What `see` found. Rejects with the last lines when the process ends first or takes too long. */
  readonly ready: Promise<Ready>;
};

export type ReadyOptions<Ready> = {
  /** Called with each line that is JSON; what it returns first is what `ready` is. */
  readonly see: (entry: LogLine, line: string) => Ready | undefined;
  /** The part of a line that may be JSON. Default: all of it. */
  readonly textOf?: ((line: string) => string) | undefined;
  readonly timeoutMs?: number | undefined;
};

const START_TIMEOUT_MS = 120_000;
const LAST_LINES = 40;
const LAST_LINES_MS = 500;
/** Without it a start takes the types out of hundreds of files, once more in each thread. */
export const SOURCE_CACHE = fileURLToPath(
  new URL('../../scripts/source-cache.mjs', import.meta.url),
);

/** What is other than usual about the start of a program. */
export type SpawnOptions = {
  /** Started instead of this Node.js with `args`, in a process group of its own. */
  readonly launcher?: Launcher | undefined;
  /** As another user, where this one is root. */
  readonly uid?: number | undefined;
};

export type Launcher = {
  readonly command: readonly [program: string, ...words: string[]];
  readonly cwd?: string | undefined;
};

/**
 * Starts a program of this project with this Node.js, without waiting for anything. '' unsets a
 * variable.
 */
export function spawnService(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { launcher, uid }: SpawnOptions = {},
): ChildProcess {
  const settings = Object.entries({ DEBUG_ASSERTIONS: '1', ...env }).filter(
    ([, value]) => value !== '' && value !== undefined,
  );
  const [program, ...words] = launcher?.command ?? [
    process.execPath,
    '--import',
    SOURCE_CACHE,
    ...args,
  ];
  return spawn(program, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: Object.fromEntries(settings),
    cwd: launcher?.cwd,
    detached: launcher !== undefined,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
}

/** Reads the log of a child that was just started. */
export function watchService<Ready>(
  child: ChildProcess,
  { see, textOf = (line) => line, timeoutMs = START_TIMEOUT_MS }: ReadyOptions<Ready>,
): ChildService<Ready> {
  if (child.stderr === null) throw new Error('stderr of a service must be a pipe');
  const rawLog: string[] = [];
  const log: LogLine[] = [];
  const { promise: ready, resolve, reject } = Promise.withResolvers<Ready>();
  const fail = (what: string): void => {
    reject(new Error(`the service ${what}:\n${rawLog.slice(-LAST_LINES).join('\n')}`));
  };
  const timer = setTimeout(() => fail(`was not ready after ${timeoutMs} ms`), timeoutMs);
  createInterface({ input: child.stderr }).on('line', (line) => {
    rawLog.push(line);
    const text = textOf(line);
    if (!text.startsWith('{')) return;
    const entry = JSON.parse(text) as LogLine;
    log.push(entry);
    const seen = see(entry, line);
    if (seen === undefined) return;
    clearTimeout(timer);
    resolve(seen);
  });
  const exited = new Promise<number | null>((settle) => child.once('exit', settle));
  child.once('exit', (code, signal) => {
    clearTimeout(timer);
    // Its last lines may come after its end, unless a child of its own holds stderr open.
    const tell = (): void => fail(`ended with ${code ?? signal}`);
    child.once('close', tell);
    setTimeout(tell, LAST_LINES_MS).unref();
  });
  return { child, rawLog, log, exited, ready };
}
