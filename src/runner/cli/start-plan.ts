import type { Terminal } from '../../command-line/terminal.ts';
import type { JsonObject } from '../../shared/json.ts';

/** What a start would run, as far as that can be reported before. */
export type StartPlan = {
  /** Name of the run. */
  readonly name: string;
  readonly fileName: string;
  readonly event: string;
  /** `github.ref` and `github.sha`. */
  readonly ref: string;
  readonly sha: string;
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  /** In the order of the file; a matrix that only the run can say is one job. */
  readonly jobs: readonly PlanJob[];
  readonly warnings: readonly string[];
  readonly forecast: Forecast;
};

/** What the files show of the end of a run before it starts. */
export type Forecast = {
  /** That of `run`. */
  readonly exitCode: number;
  readonly problems: readonly ForeseenProblem[];
};

/** `isSure`: no condition and no `continue-on-error` stands before it. */
export type ForeseenProblem = {
  readonly jobId: string;
  readonly message: string;
  readonly isSure: boolean;
};

export type PlanJob = {
  readonly id: string;
  readonly name: string;
  readonly needs: readonly string[];
  readonly matrix?: JsonObject | undefined;
  /** As written. */
  readonly if?: string | undefined;
  readonly steps: readonly PlanStep[];
};

export type PlanStep = {
  readonly name: string;
  readonly uses?: string | undefined;
  readonly if?: string | undefined;
};

/** Shows a plan: the jobs with their steps, and that nothing was run. */
export function printPlan(output: Terminal, notes: Terminal, plan: StartPlan): void {
  for (const warning of plan.warnings) notes.line(`warning: ${notes.foreign(warning)}`);
  const { name, fileName, event, ref, sha, jobs } = plan;
  const place = [fileName, event, ref.replace(/^refs\/(?:heads|tags)\//, ''), shortSha(sha)];
  const words = place.filter((word) => word !== '').map((word) => output.foreign(word));
  output.line(
    `${output.paint(output.foreign(name), 'bold')}  ${output.paint(words.join(' · '), 'dim')}`,
  );
  for (const job of jobs) {
    const about = [
      ...(job.needs.length === 0 ? [] : [`needs ${job.needs.join(', ')}`]),
      ...(job.if === undefined ? [] : [`if ${job.if}`]),
    ];
    const head = `${output.paint(output.foreign(job.id), 'cyan')} ${output.foreign(job.name)}`;
    output.line(`${head}  ${output.paint(output.foreign(about.join('  ')), 'dim')}`.trimEnd());
    for (const [index, step] of job.steps.entries()) {
      const condition = step.if === undefined ? '' : `  if ${step.if}`;
      const text = `${String(index + 1).padStart(4)} ${output.foreign(step.name)}`;
      output.line(`${text}${output.paint(output.foreign(condition), 'dim')}`);
    }
  }
  for (const text of forecastLines(plan.forecast)) output.line(output.foreign(text));
  output.line('Nothing was run.');
}

/** What is foreseen, and the exit code that follows; nothing where nothing is. */
export function forecastLines({ exitCode, problems }: Forecast): readonly string[] {
  if (problems.length === 0) return [];
  const lines = problems.map(
    ({ jobId, message, isSure }) => `${isSure ? '✗' : '?'} ${jobId}: ${message}`,
  );
  const end = exitCode === 0 ? 'would run' : 'would fail';
  return [...lines, `The run ${end}, as far as the files tell: exit code ${exitCode}`];
}

function shortSha(sha: string): string {
  return /^0*$/.test(sha) ? '' : sha.slice(0, 7);
}
