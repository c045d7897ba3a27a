import { spawn } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ownProgramOptions } from '../../shared/process/own-program.ts';
import { ExpressionEvaluationError } from '../language/expression-data.ts';
import { HASH_TIMEOUT_MS } from '../language/limits.ts';

const CHILD = fileURLToPath(new URL('./hash-files-child.ts', import.meta.url));
const FOLLOW_OPTION = '--follow-symbolic-links';
const OUTPUT_CHARACTERS_KEPT = 4_096;

/**
 * What `hashFiles(args…)` gives in `root`: the SHA-256 over the SHA-256 of each file, in the order of
 * `@actions/glob`, or '' without a match. Runs in a child process, at most 120 seconds
 * and as long as `signal` is not aborted.
 * Errors: ExpressionEvaluationError.
 */
export async function hashFilesIn(
  root: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const [first = '', ...rest] = args;
  const isOption = first.startsWith('--');
  if (isOption && first.toLowerCase() !== FOLLOW_OPTION) {
    throw new ExpressionEvaluationError(
      `Invalid glob option ${first}, available option: '${FOLLOW_OPTION}'`,
    );
  }
  const patterns = (isOption ? rest : args).join('\n');
  const folder = await realpath(root).catch(() => {
    throw new ExpressionEvaluationError('hashFiles: the workspace is not there');
  });
  return await runChild([folder, patterns, isOption ? 'follow' : ''], signal);
}

async function runChild(args: readonly string[], signal: AbortSignal | undefined): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(process.execPath, [...ownProgramOptions(), CHILD, ...args], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: HASH_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    ...(signal === undefined ? {} : { signal }),
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-OUTPUT_CHARACTERS_KEPT);
  });
  child.once('error', () => {
    reject(
      new ExpressionEvaluationError(
        signal?.aborted === true ? 'hashFiles was cancelled' : 'hashFiles could not be started',
      ),
    );
  });
  child.once('close', (code, killedBy) => {
    const hash = /\nhash=([0-9a-f]*)\n$/.exec(output)?.[1];
    if (code === 0 && hash !== undefined) {
      resolve(hash);
    } else {
      reject(new ExpressionEvaluationError(failureText(killedBy, output)));
    }
  });
  return await promise;
}

function failureText(signal: NodeJS.Signals | null, output: string): string {
  if (signal !== null) {
    return `hashFiles did not finish within ${HASH_TIMEOUT_MS / 1_000} seconds`;
  }
  const reason = /^\w*Error(?: \[\w+\])?: (.+)$/m.exec(output)?.[1];
  return reason === undefined ? 'hashFiles failed' : `hashFiles failed: ${reason}`;
}
