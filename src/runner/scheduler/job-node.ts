import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import {
  evaluateBoolean,
  evaluateCondition,
  evaluateNumber,
  evaluateTemplate,
  evaluateText,
} from '../evaluation/evaluate.ts';
import {
  chosenOfEvaluated,
  hasChosenMatrixJob,
  matrixJobsText,
} from '../language/matrix-choice.ts';
import { chosenMatrixJobs, expandMatrix, matrixJobName } from '../language/matrix.ts';
import { hasExpression } from '../language/template-access.ts';
import type { ExpressionScope, StatusView } from '../model/execution.ts';
import type { Conclusion } from '../model/run.ts';
import type { JobDefinition } from '../model/workflow.ts';
import { Cancellation } from './cancellation.ts';
import { githubContext } from './github-context.ts';
import { FairPermits } from './permits.ts';
import type {
  JobResult,
  NodeJob,
  MatrixJobContexts,
  MatrixJobRunner,
  RunContext,
  WorkflowScope,
} from './run-context.ts';
import type { PlannedJob } from './state/journal-records.ts';
import { matrixJobId, needsOf, placeBelow, planOf, shortName } from './state/run-plan.ts';
import { isAtOrBelow } from './state/run-state-reducer.ts';
import { concludeRun } from './state/run-state.ts';

const FAIL_FAST_DEFAULT = true;

type Strategy = { readonly isFailFast: boolean; readonly maxParallel: number | undefined };

/**
 * A job of a workflow as the graph of needs has it: it waits for its own needs only, decides whether it
 * runs, becomes one matrix job or those of its matrix, and comes to one result.
 */
export class JobNode {
  readonly id: string;
  readonly #context: RunContext;
  readonly #scope: WorkflowScope;
  readonly #definition: JobDefinition;
  readonly #runMatrixJob: MatrixJobRunner;
  /** The nodes of the same workflow, by key. */
  readonly #siblings: ReadonlyMap<string, JobNode>;
  readonly #done = Promise.withResolvers<void>();
  #result: JobResult | undefined;
  /** All jobs before it, near and far. */
  #hasFailureBefore = false;
  #hasSucceededBefore = true;

  constructor(
    context: RunContext,
    scope: WorkflowScope,
    definition: JobDefinition,
    siblings: ReadonlyMap<string, JobNode>,
    runMatrixJob: MatrixJobRunner,
  ) {
    this.id = scope.place.idPrefix + definition.key;
    this.#context = context;
    this.#scope = scope;
    this.#definition = definition;
    this.#siblings = siblings;
    this.#runMatrixJob = runMatrixJob;
  }

  /** Undefined until `done` resolved. */
  get result(): JobResult | undefined {
    return this.#result;
  }

  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Runs the job once its needs are done. Never rejects. */
  async run(): Promise<void> {
    const needs = this.#definition.needs.flatMap((key) => this.#siblings.get(key) ?? []);
    await Promise.all(needs.map((need) => need.done));
    for (const need of needs) {
      const result = need.#result?.result;
      this.#hasFailureBefore ||= result === 'failure' || need.#hasFailureBefore;
      this.#hasSucceededBefore &&= result === 'success' && need.#hasSucceededBefore;
    }
    try {
      this.#result = this.#keptResult() ?? (await this.#runOrSkip(needs));
    } catch (error) {
      this.#result = this.#fail(error);
    }
    this.#done.resolve();
  }

  async #runOrSkip(needs: readonly JobNode[]): Promise<JobResult> {
    if (this.#scope.cancellation.kind === 'force') return this.#completeUnstarted('cancelled');
    const needsContext = needsContextOf(needs);
    if (!(await this.#mayRun(needsContext))) return this.#completeUnstarted('skipped');
    const { matrixJobs, strategy } = await this.#expand(needsContext);
    return matrixJobs.length === 0
      ? this.#completeUnstarted('skipped')
      : await this.#runMatrixJobs(matrixJobs, strategy);
  }

  /** Undefined without a matrix. Of those that were not asked for it says so. */
  async #matrixJobsOf(scope: ExpressionScope): Promise<readonly JsonObject[] | undefined> {
    const template = this.#definition.strategy?.matrix;
    if (template === undefined) return undefined;
    const all = expandMatrix(await evaluateTemplate(template, scope));
    const { facts, omissions, workflow } = this.#context;
    const { matrix: choice } = facts.request;
    if (choice === undefined) return all;
    const chosen = hasExpression(template)
      ? chosenOfEvaluated(workflow, all, choice)
      : chosenMatrixJobs(all, choice);
    if (chosen.length === 0 || hasChosenMatrixJob(chosen, choice))
      omissions.chose(chosen.length > 0);
    if (chosen.length === 0) {
      const message = `No leg of the matrix has the values that were asked for: it has ${matrixJobsText(all)}`;
      this.#context.annotate({ level: 'warning', message, jobId: this.id });
      omissions.leftOut();
    }
    return chosen;
  }

  /** Source: GitHub's documentation, "Contexts": jobs.<job_id>.if sees github, needs, vars and inputs. */
  async #mayRun(needs: JsonObject): Promise<boolean> {
    const status: StatusView = {
      isCancelled: this.#scope.cancellation.isCancelled,
      hasFailure: this.#hasFailureBefore,
      hasSucceeded: this.#hasSucceededBefore,
      conclusionOf: (key) => this.#siblings.get(key)?.result?.result,
    };
    const { github, vars, inputs } = await this.#contexts(needs);
    const contexts = { github, needs, vars, inputs };
    return await evaluateCondition(this.#definition.if, { contexts, status });
  }

  async #contexts(
    needs: JsonObject,
  ): Promise<{ github: JsonObject; needs: JsonObject; vars: JsonObject; inputs: JsonObject }> {
    const github = githubContext({ ...this.#context.facts, hasToken: false });
    const vars = await this.#context.variablesOf('');
    return { github, needs, vars, inputs: this.#scope.inputs };
  }

  async #expand(
    needs: JsonObject,
  ): Promise<{ readonly matrixJobs: readonly NodeJob[]; readonly strategy: Strategy }> {
    const scope = { contexts: await this.#contexts(needs) };
    const definition = this.#definition.strategy;
    const isFailFast =
      definition?.failFast === undefined
        ? FAIL_FAST_DEFAULT
        : await evaluateBoolean(definition.failFast, scope);
    const maxParallel =
      definition?.maxParallel === undefined
        ? undefined
        : await evaluateNumber(definition.maxParallel, scope);
    const matrix = await this.#matrixJobsOf(scope);
    const strategy = { isFailFast, maxParallel };
    const matrixJobs: NodeJob[] = [];
    for (const [index, values] of (matrix ?? [null]).entries()) {
      const strategyContext = {
        'fail-fast': isFailFast,
        'job-index': index,
        'job-total': matrix?.length ?? 1,
        'max-parallel': maxParallel ?? matrix?.length ?? 1,
      };
      const contexts = { ...scope.contexts, strategy: strategyContext, matrix: values };
      matrixJobs.push({
        scope: this.#scope,
        definition: this.#definition,
        jobId: values === null ? this.id : matrixJobId(this.id, index),
        name: shortName(this.#scope.place.namePrefix + (await this.#nameOf(contexts))),
        matrix: values,
        strategy: strategyContext,
        needs,
        cancellation: new Cancellation(),
      });
    }
    this.#plan(matrixJobs);
    return { matrixJobs, strategy };
  }

  /** A given name without expressions gets the values of the matrix job behind it, as on GitHub. */
  async #nameOf(contexts: MatrixJobContexts): Promise<string> {
    const { name, key } = this.#definition;
    const isPlain = name === undefined || name.kind === 'literal';
    const text = name === undefined ? key : await evaluateText(name, { contexts });
    const shown = text.trim() === '' ? key : text;
    return isPlain && contexts.matrix !== null ? matrixJobName(shown, contexts.matrix) : shown;
  }

  /** Puts the matrix jobs in the place of what stood for them, unless they stand there already. */
  #plan(matrixJobs: readonly NodeJob[]): void {
    const { recorder, options, kept } = this.#context;
    const definition = this.#definition;
    const needs = needsOf(definition, this.#scope.place.idPrefix);
    const jobsMax = options.limits.jobsPerRunMax;
    const { matrix } = this.#context.facts.request;
    const jobs: PlannedJob[] = matrixJobs.flatMap((matrixJob) =>
      definition.kind === 'call' && definition.missing === undefined
        ? planOf(definition.called, placeBelow(matrixJob.jobId, matrixJob.name), jobsMax, matrix)
        : [plannedMatrixJob(matrixJob, needs, this.id)],
    );
    const isPlanned = jobs.every((job) => recorder.live.jobs.has(job.id));
    if (isPlanned && this.#definition.strategy?.matrix === undefined) return;
    const planned = new Set(jobs.map((job) => job.id));
    let others = 0;
    for (const [id, entry] of recorder.live.jobs) {
      if (!isAtOrBelow(entry.node, this.id)) others += 1;
      // A kept matrix job that the matrix of today no longer has.
      else if (kept.has(id) && !planned.has(id)) jobs.push({ ...entry.job, node: entry.node });
    }
    if (others + jobs.length > jobsMax) {
      throw new AppError('INVALID_WORKFLOW', `The run has more than ${jobsMax} jobs`);
    }
    recorder.record({ type: 'jobs.planned', node: this.id, jobs });
  }

  async #runMatrixJobs(matrixJobs: readonly NodeJob[], strategy: Strategy): Promise<JobResult> {
    const parallel = Math.max(1, Math.floor(strategy.maxParallel ?? matrixJobs.length));
    const permits = new FairPermits(parallel);
    const results: JobResult[] = [];
    await Promise.all(
      matrixJobs.map(async (matrixJob) => {
        const result = await this.#runOneMatrixJob(matrixJob, permits);
        results.push(result);
        const isFailing = result.result === 'failure' || result.hasTimedOut === true;
        if (!isFailing || !strategy.isFailFast || this.#isKept(matrixJob.jobId)) return;
        for (const other of matrixJobs) other.cancellation.cancel('cancel', 'sibling');
      }),
    );
    return summaryOf(results);
  }

  /** Whether nothing of a matrix job runs again; the jobs of a call have ids below its own. */
  #isKept(jobId: string): boolean {
    const { kept, recorder } = this.#context;
    const ids = [...recorder.live.jobs.keys()].filter((id) => isAtOrBelow(id, jobId));
    return ids.length > 0 && ids.every((id) => kept.has(id));
  }

  async #runOneMatrixJob(matrixJob: NodeJob, permits: FairPermits): Promise<JobResult> {
    const kept = this.#context.kept.has(matrixJob.jobId)
      ? this.#context.recorder.live.jobs.get(matrixJob.jobId)
      : undefined;
    if (kept?.result !== undefined) return { result: kept.result, outputs: kept.job.outputs };
    const leave = this.#followScope(matrixJob);
    try {
      const release = await permits.acquire('', matrixJob.cancellation);
      if (release === undefined) return this.#completeUnstarted('cancelled', matrixJob.jobId);
      try {
        return await this.#runMatrixJob(this.#context, matrixJob);
      } catch (error) {
        return this.#fail(error, matrixJob.jobId);
      } finally {
        release();
      }
    } finally {
      leave();
    }
  }

  /**
   * Cancels the matrix job with its workflow, unless the whole run is cancelled and the job's `if` still holds.
   * Source: GitHub's documentation, "Workflow cancellation reference". The jobs of a called workflow
   * look at their own conditions.
   */
  #followScope(matrixJob: NodeJob): () => void {
    return this.#scope.cancellation.onCancel((kind, cause) => {
      if (kind === 'force' || cause !== 'run' || this.#definition.kind === 'call') {
        matrixJob.cancellation.cancel(kind, cause);
        return;
      }
      this.#mayRun(matrixJob.needs).then(
        (isResisting) => {
          if (!isResisting) matrixJob.cancellation.cancel(kind, cause);
        },
        () => matrixJob.cancellation.cancel(kind, cause),
      );
    });
  }

  /** The result of an earlier attempt, when no job of this node runs again. */
  #keptResult(): JobResult | undefined {
    const { kept, recorder } = this.#context;
    if (kept.size === 0) return undefined;
    const results: JobResult[] = [];
    for (const [id, { node, job, result }] of recorder.live.jobs) {
      if (!isAtOrBelow(node, this.id)) continue;
      // The jobs of a called workflow give its outputs only when it is gone through.
      const isOwn = this.#definition.kind === 'steps' || !id.includes('/', this.id.length);
      if (!kept.has(id) || !isOwn || result === undefined) return undefined;
      results.push({ result, outputs: job.outputs });
    }
    return results.length === 0 ? undefined : summaryOf(results);
  }

  #fail(error: unknown, jobId?: string): JobResult {
    const message =
      error instanceof AppError ? error.message : 'The runner failed to schedule the job';
    if (!(error instanceof AppError)) {
      const cause = error instanceof Error ? error : new Error(String(error));
      this.#context.options.report('runner.schedule', cause);
    }
    this.#context.annotate({ level: 'error', message, jobId: jobId ?? this.id });
    return this.#completeUnstarted('failure', jobId);
  }

  /** Completes a job that did not start, or all that stand for this node as one. */
  #completeUnstarted(conclusion: Conclusion, jobId?: string): JobResult {
    const { recorder } = this.#context;
    const id = jobId ?? this.id;
    const ended = recorder.live.jobs.get(id);
    if (ended?.result !== undefined) return { result: ended.result, outputs: ended.job.outputs };
    if (!recorder.live.jobs.has(id)) {
      const needs = needsOf(this.#definition, this.#scope.place.idPrefix);
      const name = this.#scope.place.namePrefix + this.#definition.key;
      const jobs = [{ id, name: shortName(name), needs, node: id }];
      recorder.record({ type: 'jobs.planned', node: id, jobs });
    }
    const outputs = {};
    recorder.record({ type: 'job.completed', jobId: id, conclusion, result: conclusion, outputs });
    return { result: conclusion, outputs };
  }
}

function plannedMatrixJob(matrixJob: NodeJob, needs: readonly string[], node: string): PlannedJob {
  const { jobId: id, name, matrix } = matrixJob;
  return { id, name, needs, node, ...(matrix === null ? {} : { matrix }) };
}

function needsContextOf(needs: readonly JobNode[]): JsonObject {
  const entries = needs.map((need): [string, JsonValue] => {
    const key = need.id.slice(need.id.lastIndexOf('/') + 1);
    return [key, { result: need.result?.result ?? 'skipped', outputs: need.result?.outputs ?? {} }];
  });
  return Object.fromEntries(entries);
}

/** What the matrix jobs come to together; of an output that several give, the last that is not empty. */
function summaryOf(results: readonly JobResult[]): JobResult {
  const outputs = new Map<string, string>();
  for (const { outputs: given } of results) {
    for (const [name, value] of Object.entries(given)) {
      if (value !== '' || !outputs.has(name)) outputs.set(name, value);
    }
  }
  const result = concludeRun(
    results.map((each) => each.result),
    false,
  );
  const hasTimedOut = results.some((each) => each.hasTimedOut === true);
  return { result, outputs: Object.fromEntries(outputs), hasTimedOut };
}
