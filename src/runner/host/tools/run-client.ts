import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { baseEnvironment } from '../process/step-environment.ts';

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;
const TIMEOUT_MS_DEFAULT = 10 * 60_000;
/** Lines of npm that are no sentence. */
const NPM_FIELD = /^(?:code|syscall|errno|path|dest|command|sh) |^\s|^A complete log of this run/;
const REASON_CHARACTERS_MAX = 400;
const LINES_MAX = 6;

/**
 * Beside what a step may see: where registries are and how they are reached, credentials for them
 * included. Nothing of a workflow is among it: what a job asks for changes what is installed, never where
 * it comes from.
 */
const CLIENT_NAMES: ReadonlySet<string> = new Set(
  [
    'HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy',
    'NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO',
    'npm_config_registry npm_config_cafile npm_config_userconfig npm_config_globalconfig',
    'NPM_CONFIG_REGISTRY NPM_CONFIG_CAFILE NPM_CONFIG_USERCONFIG NPM_CONFIG_GLOBALCONFIG',
    'PIP_CERT PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT',
    'PIP_CLIENT_CERT PIP_TRUSTED_HOST XDG_CONFIG_HOME NETRC',
    'UV_PYTHON_INSTALL_MIRROR UV_PYTHON_DOWNLOADS_JSON_URL UV_NATIVE_TLS UV_HTTP_TIMEOUT',
    'GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY GOAUTH GOENV GOINSECURE',
  ].flatMap((names) => names.split(' ')),
);

export type ClientEnvironment = Readonly<Record<string, string>>;

/** What clients of registries get of the runner's own environment. */
export function clientEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const env: Record<string, string> = { ...baseEnvironment(environment).variables };
  for (const name of CLIENT_NAMES) {
    const value = environment[name];
    if (value !== undefined && value !== '') env[name] = value;
  }
  return env;
}

export type ClientResult = {
  readonly code: number;
  /** How it ended where that is no exit code of its own. */
  readonly ending?: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
};

export type ClientOptions = {
  readonly cwd: string;
  readonly env: ClientEnvironment;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Runs a program to its end. Any exit code is a result; one that ran too long, or could not be started, has
 * the code 127 and says why in `ending`. Errors: CANCELLED.
 */
export async function runClient(
  file: string,
  args: readonly string[],
  options: ClientOptions,
): Promise<ClientResult> {
  const { cwd, env, signal, timeoutMs = TIMEOUT_MS_DEFAULT } = options;
  const { promise, resolve, reject } = Promise.withResolvers<ClientResult>();
  execFile(
    file,
    [...args],
    {
      cwd,
      env: { ...env },
      timeout: timeoutMs,
      maxBuffer: OUTPUT_BYTES_MAX,
      encoding: 'utf8',
      ...(signal === undefined ? {} : { signal }),
    },
    (error, stdout, stderr) => {
      if (signal?.aborted === true) {
        reject(new AppError('CANCELLED', 'The step was stopped while a tool was made ready'));
      } else if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
      else {
        const ending = endingOf(error, timeoutMs);
        resolve({ code: 127, ending, stdout, stderr });
      }
    },
  );
  return await promise;
}

function endingOf(
  error: Readonly<Error & { signal?: NodeJS.Signals | undefined; killed?: boolean | undefined }>,
  timeoutMs: number,
): string {
  if (error.killed === true) return `it took longer than ${timeoutMs} ms`;
  return typeof error.signal === 'string' ? `it was ended by ${error.signal}` : error.message;
}

/** As `runClient`; stdout. Errors: UPSTREAM_ERROR with the end of what it complained of. */
export async function mustRunClient(
  file: string,
  args: readonly string[],
  options: ClientOptions,
): Promise<string> {
  const result = await runClient(file, args, options);
  if (result.code === 0) return result.stdout;
  const name = file.slice(file.lastIndexOf('/') + 1);
  throw new AppError('UPSTREAM_ERROR', `${name} failed: ${failureOf(result, 'last')}`);
}

/**
 * Describes how a program ended that failed, and the lines that it said of that, the first or the last. It is one
 * line, without the users of addresses. `mask` hides secrets in what a program said that had them: it is shortened,
 * so that this cannot be done later.
 */
export function failureOf(
  result: ClientResult,
  which: 'first' | 'last',
  mask: (text: string) => string = (text) => text,
): string {
  const { code, ending } = result;
  const [stderr, stdout] = [mask(result.stderr), mask(result.stdout)];
  const how = ending ?? `exit code ${code}`;
  const lines = linesIn(stderr.trim() === '' ? stdout : stderr);
  const some = which === 'first' ? lines.slice(0, LINES_MAX) : lines.slice(-LINES_MAX);
  const text = (npmReason(stderr) ?? some.join('; ')).replaceAll(/\/\/[^/@\s]+@/g, '//***@');
  if (text === '') return ending === undefined ? `${how}, and it did not say why` : how;
  const [from, to] = which === 'first' ? [0, REASON_CHARACTERS_MAX] : [-REASON_CHARACTERS_MAX];
  return `${how}: ${text.slice(from, to)}`;
}

function linesIn(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/^(?:ERROR:|error:)\s*/i, '').trim())
    .filter((line) => line !== '');
}

/** npm's code and the first thing that it says; behind it come stacks, properties and general advice. */
function npmReason(stderr: string): string | undefined {
  const lines = [...stderr.matchAll(/^npm (?:error|ERR!) (.*)$/gm)].map(([, line = '']) => line);
  const code = lines.find((line) => line.startsWith('code '))?.slice('code '.length);
  const said = lines
    .find((line) => !NPM_FIELD.test(line))
    ?.replace(/^(?:FetchError|Error): /, '')
    // The status, or the code in small letters, before each line.
    .replace(/^(?:\d{3}|notarget) /, '');
  const words = [code, said].filter((word) => word !== undefined && word !== '');
  return words.length === 0 ? undefined : words.join(': ');
}

/** The first program of that name on a PATH. */
export function findOnPath(program: string, path: string | undefined): string | undefined {
  return (path ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find(isProgram);
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not ours to run.
    return false;
  }
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * Copies a file or folder to `to`, which is not there yet: as a clone where the file system can, never as
 * another name of the same file. Links stay links. Errors: UPSTREAM_ERROR, those of the file system.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  mkdirSync(dirname(to), { recursive: true });
  if (process.platform !== 'linux') {
    const mode = constants.COPYFILE_FICLONE;
    await cp(from, to, { recursive: true, verbatimSymlinks: true, mode });
    return;
  }
  const args = ['-R', '-P', '--preserve=mode,timestamps', '--reflink=auto', '-T', '--', from, to];
  await mustRunClient('cp', args, { cwd: '/', env: { PATH } });
}
