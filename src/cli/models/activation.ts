import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { type CliReason, EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer } from '../core/rows.ts';
import { textOfTupleJson } from '../core/tuple-json.ts';
import { type ActivationJson, modelCall, stateText } from './model-calls.ts';

/** The answer to a write of a version. */
export type WrittenJson = {
  /** `0` after a dry run. */
  readonly version: string;
  readonly activation: ActivationJson;
};

const WAIT_SECONDS = { default: 600, max: 86_400 } as const;
const POLL_MS = 250;

/** Longest wait for a version in ms; 0 with `--no-wait`. Errors: INVALID_REQUEST. */
export function waitMsOf(line: CliLine): number {
  const seconds = integerOfOption('wait-max', line.text('wait-max'), 1, WAIT_SECONDS.max);
  return line.isSet('no-wait') ? 0 : (seconds ?? WAIT_SECONDS.default) * 1000;
}

/**
 * Waits until a written version is in force or has failed, and shows the outcome. Resolves to the
 * exit code. Errors: those of `awaitActivation`.
 */
export async function showActivation(
  line: CliLine,
  connection: ServiceConnection,
  written: WrittenJson,
  waitMs: number,
): Promise<number> {
  const { version } = written;
  const activation = await awaitActivation(line, connection, written, waitMs);
  const hasCome = !isPending(activation) || waitMs === 0 || version === '0';
  showAnswer(line, { ...written, activation }, () =>
    hasCome ? wordsOf(version, activation) : [`version ${version} gave way to a newer one`],
  );
  const state = stateText(activation.state);
  return hasCome && (state === 'active' || state === 'pending') ? EXIT_OK : EXIT_NO;
}

/**
 * Waits until a written version is in force or has failed; it is still pending if a newer one
 * replaced it. Shows progress.
 * Errors: UNAVAILABLE if it is pending after `waitMs`, or the service does not answer; the version
 * stays written.
 */
export async function awaitActivation(
  line: CliLine,
  connection: ServiceConnection,
  written: WrittenJson,
  waitMs: number,
): Promise<ActivationJson> {
  const { version } = written;
  const endMs = performance.now() + waitMs;
  let { activation } = written;
  while (waitMs > 0 && version !== '0' && isPending(activation)) {
    const scanned = `${activation.tuples_scanned} stored tuples looked at`;
    if (performance.now() > endMs) {
      const problem = `version ${version} is written, and not in force after ${waitMs / 1000} s: ${scanned}`;
      throw new AppError<CliReason>('UNAVAILABLE', problem);
    }
    line.screens.notes.status(`version ${version} is pending: ${scanned}`);
    await sleep(POLL_MS);
    const newest = await newestActivation(connection, version);
    if (newest.version !== version) break;
    activation = newest;
  }
  line.screens.notes.status('');
  return activation;
}

/**
 * The newest version's activation. Errors: those of `call`, with the note that the version is
 * written nevertheless.
 */
async function newestActivation(
  connection: ServiceConnection,
  version: string,
): Promise<ActivationJson> {
  try {
    const method = 'GetModelActivation';
    const answer = await modelCall<{ readonly activation: ActivationJson }>(connection, method, {});
    return answer.activation;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const problem = `version ${version} is written, and was pending: ${error.message}`;
    throw new AppError<string>(error.reason, problem, error.metadata, error);
  }
}

function isPending({ state }: ActivationJson): boolean {
  return stateText(state) === 'pending';
}

function wordsOf(version: string, activation: ActivationJson): readonly string[] {
  const { tuples_scanned: scanned, tuples_refused: refused, examples } = activation;
  const state = stateText(activation.state);
  const isDry = version === '0';
  const what = isDry ? 'dry run: it' : `version ${version}`;
  const is = isDry ? 'would be' : 'is';
  const head = `${what} ${is} ${state === 'active' ? 'in force' : state}`;
  const counts = refused === '0' ? '' : `: ${refused} of ${scanned} stored tuples do not fit`;
  return [
    head + counts,
    ...examples.map(({ tuple, problem }) => `  ${textOfTupleJson(tuple)}: ${problem}`),
    ...(activation.dropped_namespaces.length === 0
      ? []
      : [`  left out: ${activation.dropped_namespaces.join(', ')}`]),
  ];
}
