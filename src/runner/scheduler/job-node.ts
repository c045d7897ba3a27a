import { AppError } from '../../shared/app-error.ts';
import {
  evaluateBoolean,
  evaluateCondition,
  evaluateNumber,
  evaluateTemplate,
  evaluateText,
} from '../evaluation/evaluate.ts';
import { chosenOfEvaluated, hasChosenLeg, legsText } from '../language/matrix-choice.ts';
import { chosenLegs, expandMatrix, legName } from '../language/matrix.ts';
import { hasExpression } from '../language/template-access.ts';
import type { Scope, StatusView } from '../model/execution.ts';
import type { Conclusion, JsonObject, JsonValue } from '../model/run.ts';
import type { JobDefinition } from '../model/workflow.ts';
import { Cancellation } from './cancellation.ts';
import { githubContext } from './github-context.ts';
import { FairPermits } from './permits.ts';
import type {
  JobResult,
  Leg,
  LegContexts,
  LegRunner,
  RunContext,
  WorkflowScope,
} from './run-context.ts';
import type { PlannedJob } from './state/journal-records.ts';
import { legId, needsOf, placeBelow, planOf, shortName } from './state/run-plan.ts';
import { isAtOrBelow } from './state/run-state-reducer.ts';
import { concludeRun } from './state/run-state.ts';

const FAIL_FAST_DEFAULT = true;

type Strategy = { readonly isFailFast: boolean; readonly maxParallel: number | undefined };

/**
 * A job of a workflow as the graph of needs has it: it waits for its own needs only, decides whether it
 * runs, becomes one leg or those of its matrix, and comes to one result.
 */
export class JobNode {
  readonly id: string;
  readonly #context: RunContext;
  readonly #scope: WorkflowScope;
  readonly #definition: JobDefinition;
  readonly #runLeg: LegRunner;
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
    runLeg: LegRunner,
  ) {
    this.id = scope.place.idPrefix + definition.key;
    this.#context = context;
    this.#scope = scope;
    this.#definition = definition;
    this.#siblings = siblings;
    this.#runLeg = runLeg;
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
    const { legs, strategy } = await this.#expand(needsContext);
    return legs.length === 0
      ? this.#completeUnstarted('skipped')
      : await this.#runLegs(legs, strategy);
  }

  /** Undefined without a matrix. Of those that were not asked for it says so. */
  async #matrixLegs(scope: Scope): Promise<readonly JsonObject[] | undefined> {
    const template = this.#definition.strategy?.matrix;
    if (template === undefined) return undefined;
    const all = expandMatrix(await evaluateTemplate(template, scope));
    const { facts, omissions, workflow } = this.#context;
    const { matrix: choice } = facts.request;
    if (choice === undefined) return all;
    const chosen = hasExpression(template)
      ? chosenOfEvaluated(workflow, all, choice)
      : chosenLegs(all, choice);
    if (chosen.length === 0 || hasChosenLeg(chosen, choice)) omissions.chose(chosen.length > 0);
    if (chosen.length === 0) {
      const message = `No leg of the matrix has the values that were asked for: it has ${legsText(all)}`;
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
  ): Promise<{ readonly legs: readonly Leg[]; readonly strategy: Strategy }> {
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
    const matrix = await this.#matrixLegs(scope);
    const strategy = { isFailFast, maxParallel };
    const legs: Leg[] = [];
    for (const [index, values] of (matrix ?? [null]).entries()) {
      const strategyContext = {
        'fail-fast': isFailFast,
        'job-index': index,
        'job-total': matrix?.length ?? 1,
        'max-parallel': maxParallel ?? matrix?.length ?? 1,
      };
      const contexts = { ...scope.contexts, strategy: strategyContext, matrix: values };
      legs.push({
        scope: this.#scope,
        definition: this.#definition,
        jobId: values === null ? this.id : legId(this.id, index),
        name: shortName(this.#scope.place.namePrefix + (await this.#nameOf(contexts))),
        matrix: values,
        strategy: strategyContext,
        needs,
        cancellation: new Cancellation(),
      });
    }
    this.#plan(legs);
    return { legs, strategy };
  }

  /** A given name without expressions gets the values of the leg behind it, as on GitHub. */
  async #nameOf(contexts: LegContexts): Promise<string> {
    const { name, key } = this.#definition;
    const isPlain = name === undefined || name.kind === 'literal';
    const text = name === undefined ? key : await evaluateText(name, { contexts });
    const shown = text.trim() === '' ? key : text;
    return isPlain && contexts.matrix !== null ? legName(shown, contexts.matrix) : shown;
  }

  /** Puts the legs in the place of what stood for them, unless they stand there already. */
  #plan(legs: readonly Leg[]): void {
    const { recorder, options, kept } = this.#context;
    const definition = this.#definition;
    const needs = needsOf(definition, this.#scope.place.idPrefix);
    const jobsMax = options.limits.jobsPerRunMax;
    const { matrix } = this.#context.facts.request;
    const jobs: PlannedJob[] = legs.flatMap((leg) =>
      definition.kind === 'call' && definition.missing === undefined
        ? planOf(definition.called, placeBelow(leg.jobId, leg.name), jobsMax, matrix)
        : [plannedLeg(leg, needs, this.id)],
    );
    const isPlanned = jobs.every((job) => recorder.live.jobs.has(job.id));
    if (isPlanned && this.#definition.strategy?.matrix === undefined) return;
    const planned = new Set(jobs.map((job) => job.id));
    let others = 0;
    for (const [id, entry] of recorder.live.jobs) {
      if (!isAtOrBelow(entry.node, this.id)) others += 1;
      // A kept leg that the matrix of today no longer has.
      else if (kept.has(id) && !planned.has(id)) jobs.push({ ...entry.job, node: entry.node });
    }
    if (others + jobs.length > jobsMax) {
      throw new AppError('INVALID_WORKFLOW', `The run has more than ${jobsMax} jobs`);
    }
    recorder.record({ type: 'jobs.planned', node: this.id, jobs });
  }

  async #runLegs(legs: readonly Leg[], strategy: Strategy): Promise<JobResult> {
    const parallel = Math.max(1, Math.floor(strategy.maxParallel ?? legs.length));
    const permits = new FairPermits(parallel);
    const results: JobResult[] = [];
    await Promise.all(
      legs.map(async (leg) => {
        const result = await this.#runOneLeg(leg, permits);
        results.push(result);
        const isFailing = result.result === 'failure' && strategy.isFailFast;
        if (!isFailing || this.#context.kept.has(leg.jobId)) return;
        for (const other of legs) other.cancellation.cancel('cancel', 'sibling');
      }),
    );
    return summaryOf(results);
  }

  async #runOneLeg(leg: Leg, permits: FairPermits): Promise<JobResult> {
    const kept = this.#context.kept.has(leg.jobId)
      ? this.#context.recorder.live.jobs.get(leg.jobId)
      : undefined;
    if (kept?.result !== undefined) return { result: kept.result, outputs: kept.job.outputs };
    const leave = this.#followScope(leg);
    try {
      const release = await permits.acquire('', leg.cancellation);
      if (release === undefined) return this.#completeUnstarted('cancelled', leg.jobId);
      try {
        return await this.#runLeg(this.#context, leg);
      } catch (error) {
        return this.#fail(error, leg.jobId);
      } finally {
        release();
      }
    } finally {
      leave();
    }
  }

  /**
   * Cancels the leg with its workflow, unless the whole run is cancelled and the job's `if` still holds.
   * Source: GitHub's documentation, "Workflow cancellation reference". The jobs of a called workflow
   * look at their own conditions.
   */
  #followScope(leg: Leg): () => void {
    return this.#scope.cancellation.onCancel((kind, cause) => {
      if (kind === 'force' || cause !== 'run' || this.#definition.kind === 'call') {
        leg.cancellation.cancel(kind, cause);
        return;
      }
      this.#mayRun(leg.needs).then(
        (isResisting) => {
          if (!isResisting) leg.cancellation.cancel(kind, cause);
        },
        () => leg.cancellation.cancel(kind, cause),
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

function plannedLeg(leg: Leg, needs: readonly string[], node: string): PlannedJob {
  const { jobId: id, name, matrix } = leg;
  return { id, name, needs, node, ...(matrix === null ? {} : { matrix }) };
}

function needsContextOf(needs: readonly JobNode[]): JsonObject {
  const entries = needs.map((need): [string, JsonValue] => {
    const key = need.id.slice(need.id.lastIndexOf('/') + 1);
    return [key, { result: need.result?.result ?? 'skipped', outputs: need.result?.outputs ?? {} }];
  });
  return Object.fromEntries(entries);
}

/** What the legs come to together; of an output that several give, the last that is not empty. */
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
  return { result, outputs: Object.fromEntries(outputs) };
}
