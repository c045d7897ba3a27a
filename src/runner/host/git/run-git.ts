import { execFile } from 'node:child_process';
import { AppError } from '../../../shared/app-error.ts';
import { captureNative, type CaptureStop } from './capture-native.ts';

const TIMEOUT_MS_DEFAULT = 60_000;
const OUTPUT_BYTES_MAX_DEFAULT = 64 * 1024 * 1024;
const REF_CHARACTERS_MAX = 1_024;
/** Said before each command: no foreign transports, no hooks of the project, nothing in the background. */
const FLAGS: readonly string[] = [
  '-c',
  'protocol.ext.allow=never',
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'gc.auto=0',
  '-c',
  'maintenance.auto=false',
  '-c',
  'core.fsmonitor=false',
];
/** What git needs of this process's environment; its own GIT_ variables would point it elsewhere. */
const INHERITED: readonly string[] = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'XDG_CONFIG_HOME',
  'SSH_AUTH_SOCK',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
];

export type GitOptions = {
  /** Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /** Of stdout and of stderr, default 64 MiB. */
  readonly outputBytesMax?: number | undefined;
  readonly input?: string | Uint8Array | undefined;
  /** Added to the scrubbed environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Settings of this call that others may not see in the list of processes, as `http.extraHeader`. */
  readonly config?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
};

export type GitResult = {
  readonly exitCode: number;
  readonly stdout: Buffer;
  /** May hold paths and addresses: for decisions and the log, not for answers. */
  readonly stderr: string;
};

/** Plain git in one directory. Never asks anybody anything, runs no hooks of the project. */
export interface Git {
  readonly dir: string;
  /**
   * `args`: the command and its options; whatever comes from outside stands behind `--end-of-options`
   * or went through `mustRef`. Any exit code is a result.
   * Errors: GIT_FAILED when git cannot be started or died of a signal, DEADLINE_EXCEEDED,
   * RESULT_TOO_LARGE, CANCELLED. Cost: one process, about 2 ms.
   */
  tryRun(args: readonly string[], options?: GitOptions): Promise<GitResult>;
  /** stdout as text. Errors: also GIT_FAILED for an exit code other than 0 (metadata.exitCode). */
  run(args: readonly string[], options?: GitOptions): Promise<string>;
  /** The same git in another directory. */
  in(dir: string): Git;
}

export function createGit(dir: string): Git {
  const tryRun = (args: readonly string[], options: GitOptions = {}): Promise<GitResult> =>
    execute(dir, args, options);
  return {
    dir,
    tryRun,
    async run(args, options) {
      const result = await tryRun(args, options);
      if (result.exitCode !== 0) throw gitFailure(args, result);
      return result.stdout.toString('utf8');
    },
    in: createGit,
  };
}

/** The error of a command that ended with another code than 0; its stderr is the cause, for the log alone. */
export function gitFailure(args: readonly string[], result: GitResult): AppError {
  const command = args[0] ?? '';
  return new AppError(
    'GIT_FAILED',
    `git ${command} ended with code ${result.exitCode}`,
    { command, exitCode: String(result.exitCode) },
    new Error(result.stderr.trim()),
  );
}

/**
 * `ref` as it may stand in a command: not empty, not an option, one revision (no range), no white
 * space or control characters. `field` is where the caller gave it. Errors: INVALID_REF.
 */
export function mustRef(ref: string, field = 'ref'): string {
  const isFine =
    ref.length > 0 &&
    ref.length <= REF_CHARACTERS_MAX &&
    !ref.startsWith('-') &&
    !ref.startsWith('^') &&
    !ref.includes('..') &&
    // oxlint-disable-next-line no-control-regex -- those are what is refused
    !/[\u0000-\u0020\u007f]/.test(ref);
  if (!isFine) throw new AppError('INVALID_REF', 'not the name of a revision', { field });
  return ref;
}

function execute(dir: string, args: readonly string[], options: GitOptions): Promise<GitResult> {
  return executeNative(dir, args, options) ?? executeByNode(dir, args, options);
}

/** Undefined where it cannot be done so. A command with input needs Node's way. */
function executeNative(
  dir: string,
  args: readonly string[],
  options: GitOptions,
): Promise<GitResult> | undefined {
  if (options.input !== undefined || options.signal?.aborted === true) return undefined;
  const { timeoutMs = TIMEOUT_MS_DEFAULT, outputBytesMax = OUTPUT_BYTES_MAX_DEFAULT } = options;
  const running = captureNative({
    file: 'git',
    args: [...FLAGS, ...args],
    cwd: dir,
    env: environment(options),
    timeoutMs,
    outputBytesMax,
    signal: options.signal,
  });
  return running?.then(({ exitCode, stopped, stdout, stderr }) => {
    if (stopped !== undefined) throw stoppedError(args[0] ?? '', stopped, timeoutMs);
    if (exitCode === null) throw startFailure(args[0] ?? '', new Error('a signal'), timeoutMs);
    return { exitCode, stdout, stderr: stderr.toString('utf8') };
  });
}

function executeByNode(
  dir: string,
  args: readonly string[],
  options: GitOptions,
): Promise<GitResult> {
  const { timeoutMs = TIMEOUT_MS_DEFAULT, outputBytesMax = OUTPUT_BYTES_MAX_DEFAULT } = options;
  return new Promise((resolve, reject) => {
    const child = execFile(
      'git',
      [...FLAGS, ...args],
      {
        cwd: dir,
        encoding: 'buffer',
        env: environment(options),
        timeout: timeoutMs,
        maxBuffer: outputBytesMax,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : error.code;
        if (typeof exitCode === 'number') {
          resolve({ exitCode, stdout, stderr: stderr.toString('utf8') });
        } else {
          reject(startFailure(args[0] ?? '', error, timeoutMs));
        }
      },
    );
    // A command that ends without reading its input is judged by its exit code.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input ?? '');
  });
}

function startFailure(command: string, error: unknown, timeoutMs: number): AppError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
    return stoppedError(command, 'output', timeoutMs);
  }
  if (code === 'ABORT_ERR') return stoppedError(command, 'abort', timeoutMs);
  if (error instanceof Error && 'killed' in error && error.killed === true) {
    return stoppedError(command, 'timeout', timeoutMs);
  }
  if (code === 'ENOENT') {
    return new AppError('GIT_FAILED', 'git or the directory is not there', { command }, error);
  }
  return new AppError('GIT_FAILED', `git ${command} could not be run`, { command }, error);
}

function stoppedError(command: string, why: CaptureStop, timeoutMs: number): AppError {
  if (why === 'output') {
    return new AppError('RESULT_TOO_LARGE', `git ${command} wrote too much`, { command });
  }
  if (why === 'abort') return new AppError('CANCELLED', `git ${command} was stopped`);
  const text = `git ${command} took longer than ${timeoutMs} ms`;
  return new AppError('DEADLINE_EXCEEDED', text, { command });
}

function environment(options: GitOptions): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  const settings = Object.entries(options.config ?? {});
  for (const [index, [key, value]] of settings.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return {
    ...env,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    // ssh asks through a program that always declines, never at the terminal.
    SSH_ASKPASS: '/bin/false',
    SSH_ASKPASS_REQUIRE: 'force',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_CONFIG_COUNT: String(settings.length),
    ...options.env,
  };
}

/** With a scheme, or as scp(1) writes it; a path on this machine names no owner. */
const ON_A_HOST =
  /^(?:(?:https?|ssh|git):\/\/[^/]+\/|[^/\s]+@[^/:\s]+:(?!\/))(?:\S*\/)?([\w.-]+)\/([\w.-]+?)(?:\.git)?\/?$/;

/**
 * `owner/name` of the repository that the project was cloned from: the remote `origin`. Undefined when
 * there is none, it is on no host, or there is no git. Cost: one process.
 */
export async function originRepository(git: Git): Promise<string | undefined> {
  const result = await git.tryRun(['config', '--get', 'remote.origin.url']).catch(() => undefined);
  const url = result?.exitCode === 0 ? result.stdout.toString('utf8').trim() : '';
  const parts = ON_A_HOST.exec(url);
  return parts === null ? undefined : `${parts[1]}/${parts[2]}`;
}
