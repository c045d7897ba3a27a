import { readApart } from '../../host/isolation/open-apart.ts';
import type { ProcessExit } from '../../host/process/run-process.ts';
import { startSupervised } from '../../host/process/supervised-process.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import { createCommandSession } from '../../step-output/command-session.ts';
import { createLineSplitter } from '../../step-output/line-splitter.ts';
import type { JobState } from '../state/job-state.ts';
import { LOG_LINE_BYTES_MAX } from '../state/limits.ts';
import type { StepRun } from '../state/step-run.ts';

export type StepProcess = {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
};

/**
 * Runs a program for a step: its output goes through workflow commands and masks to the log, a stop of
 * the step starts the kill escalation. What its commands set is kept in `run`.
 *
 * @returns how it ended; `hasFailed` when a command of its output went wrong. Resolves once its process
 * group is gone, if it was stopped.
 */
export async function runStepProcess(
  job: JobState,
  run: StepRun,
  program: StepProcess,
): Promise<ProcessExit & { readonly hasFailed: boolean }> {
  const session = createCommandSession({
    masker: job.masker,
    matchers: job.matchers,
    repository: job.repository,
    isDebug: job.isDebug,
    allowsUnsecureCommands: isTrue(program.env['ACTIONS_ALLOW_UNSECURE_COMMANDS']),
    allowsUnsecureTokens: isTrue(program.env['ACTIONS_ALLOW_UNSECURE_STOPCOMMAND_TOKENS']),
    ...(job.request.isolation === undefined
      ? {}
      : { readFile: apartReader(job.request.isolation) }),
    jobId: job.request.jobId,
    stepNumber: run.log.number,
  });
  const splitter = createLineSplitter({
    lineBytesMax: LOG_LINE_BYTES_MAX,
    masker: job.masker,
    onLines: (lines, block) =>
      run.log.writeOutput(session.handle(lines, block), Buffer.byteLength(block) + 1),
  });
  const { isolation } = job.request;
  const env = { ...program.env, RUNNER_TRACKING_ID: job.trackingId };
  const request = {
    ...(isolation === undefined ? program : isolation.wrap({ ...program, env })),
    trackingId: job.trackingId,
    onChunk: (chunk: Buffer) => splitter.push(chunk),
    killEscalation: job.dependencies.killEscalation,
  };
  const running = await startSupervised(request, job.supervisor);
  let climbing: Promise<void> | undefined;
  const forget = run.stop.onRequest((kind) => {
    if (kind === 'kill') running.kill();
    else climbing = running.interrupt();
  });
  const exit = await running.exit;
  await climbing;
  forget();
  splitter.end();
  for (const [name, value] of session.env) run.environment.set(name, value);
  for (const folder of session.path) run.environment.addPath(folder);
  for (const [name, value] of session.outputs) run.outputs.set(name, value);
  for (const [name, value] of session.state) run.state.set(name, value);
  return { ...exit, hasFailed: session.hasFailed };
}

function apartReader(isolation: JobIsolation): (path: string) => string {
  return (path) => readApart(path, isolation).toString('utf8');
}

function isTrue(text: string | undefined): boolean {
  return text?.toLowerCase() === 'true';
}

/** Reports what a program ended with; true when it succeeded. */
export function judgeExit(
  run: StepRun,
  program: string,
  exit: ProcessExit & { readonly hasFailed: boolean },
): boolean {
  if (exit.error !== undefined) {
    run.log.error(`${program} could not be started: ${exit.error.message}`);
    return false;
  }
  const wasStopped = run.stop.kind !== undefined;
  if (exit.code !== 0 && !wasStopped) {
    run.log.error(
      exit.signal === null
        ? `Process completed with exit code ${exit.code ?? 1}.`
        : `Process was ended by ${exit.signal}.`,
    );
  }
  return exit.code === 0 && !exit.hasFailed;
}
