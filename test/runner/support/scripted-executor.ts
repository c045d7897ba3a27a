import { evaluateCondition, evaluateText } from '../../../src/runner/evaluation/evaluate.ts';
import type {
  CancelKind,
  JobExecution,
  JobExecutor,
  JobOutcome,
  JobReport,
  JobRequest,
} from '../../../src/runner/model/execution.ts';
import type { Conclusion } from '../../../src/runner/model/run.ts';
import type { JsonValue } from '../../../src/shared/json.ts';

type Gate = { readonly isOpen: Promise<void>; readonly open: () => void };

/**
 * A small executor without processes, for tests that need control over time. A step's script is one
 * word and its argument: `ok`, `fail`, `say TEXT`, `set NAME VALUE` (an output of the job's steps), `wait GATE` (until
 * the test opens it or the job is cancelled), `stay GATE` (not even cancel ends it), `throw`.
 */
export class ScriptedExecutor implements JobExecutor {
  readonly requests: JobRequest[] = [];
  readonly #gates = new Map<string, Gate>();
  /** Jobs between their start and their end. */
  running = 0;
  runningMax = 0;

  open(name: string): void {
    this.#gate(name).open();
  }

  execute(request: JobRequest, report: JobReport): JobExecution {
    this.requests.push(request);
    this.running += 1;
    this.runningMax = Math.max(this.runningMax, this.running);
    const job = new ScriptedJob(request, report, (name) => this.#gate(name).isOpen);
    const outcome = job.run().finally(() => {
      this.running -= 1;
    });
    return { outcome, cancel: (kind) => job.cancel(kind) };
  }

  #gate(name: string): Gate {
    let gate = this.#gates.get(name);
    if (gate === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = { isOpen: promise, open: resolve };
      this.#gates.set(name, gate);
    }
    return gate;
  }
}

class ScriptedJob {
  readonly #request: JobRequest;
  readonly #report: JobReport;
  readonly #gateOf: (name: string) => Promise<void>;
  readonly #cancelled = Promise.withResolvers<void>();
  readonly #forced = Promise.withResolvers<void>();
  readonly #outputs = new Map<string, Record<string, string>>();
  #kind: CancelKind | undefined;

  constructor(request: JobRequest, report: JobReport, gateOf: (name: string) => Promise<void>) {
    this.#request = request;
    this.#report = report;
    this.#gateOf = gateOf;
  }

  cancel(kind: CancelKind): void {
    this.#kind = kind;
    this.#cancelled.resolve();
    if (kind === 'force') this.#forced.resolve();
  }

  async run(): Promise<JobOutcome> {
    const { steps } = this.#request.job;
    const named = steps.map((step, index) => ({
      number: index + 1,
      name: `step ${index + 1}`,
      id: step.id,
    }));
    this.#report.stepsKnown(named);
    let hasFailed = false;
    let wasStopped = false;
    for (const [index, step] of steps.entries()) {
      const number = index + 1;
      const name = `step ${number}`;
      const status = { isCancelled: this.#kind !== undefined, hasFailure: hasFailed };
      const contexts = { ...this.#request.contexts, steps: this.#stepsContext() };
      const mayRun =
        this.#kind !== 'force' && (await evaluateCondition(step.if, { contexts, status }));
      if (!mayRun || step.kind !== 'run') {
        this.#complete(number, name, 'skipped');
        continue;
      }
      this.#report.stepStarted(number, name);
      const script = await evaluateText(step.run, { contexts });
      const conclusion = await this.#perform(number, step.id, script);
      if (conclusion === 'failure') hasFailed = true;
      if (conclusion === 'cancelled') wasStopped = true;
      this.#complete(number, name, conclusion, step.id);
    }
    const isCancelled = wasStopped || this.#kind !== undefined;
    const conclusion = isCancelled ? 'cancelled' : hasFailed ? 'failure' : 'success';
    return { conclusion, outputs: await this.#jobOutputs() };
  }

  #stepsContext(): Record<string, JsonValue> {
    return Object.fromEntries(Array.from(this.#outputs, ([id, outputs]) => [id, { outputs }]));
  }

  async #jobOutputs(): Promise<Record<string, string>> {
    const contexts = { ...this.#request.contexts, steps: this.#stepsContext() };
    const outputs: Record<string, string> = {};
    for (const [name, template] of this.#request.job.outputs) {
      outputs[name] = await evaluateText(template, { contexts });
    }
    return outputs;
  }

  async #perform(number: number, id: string | undefined, script: string): Promise<Conclusion> {
    const [word, ...rest] = script.trim().split(' ');
    const argument = rest.join(' ');
    switch (word) {
      case 'ok':
        return 'success';
      case 'fail':
        return 'failure';
      case 'say':
        await this.#report.log(number, [argument]);
        return 'success';
      case 'set': {
        const [name = '', ...value] = rest;
        this.#outputs.set(id ?? '', { ...this.#outputs.get(id ?? ''), [name]: value.join(' ') });
        return 'success';
      }
      case 'wait': {
        await Promise.race([this.#gateOf(argument), this.#cancelled.promise]);
        return this.#kind === undefined ? 'success' : 'cancelled';
      }
      case 'stay': {
        await Promise.race([this.#gateOf(argument), this.#forced.promise]);
        return this.#kind === 'force' ? 'cancelled' : 'success';
      }
      default:
        throw new Error(`no such word: ${script}`);
    }
  }

  #complete(number: number, name: string, conclusion: Conclusion, id?: string): void {
    const outputs = this.#outputs.get(id ?? '') ?? {};
    this.#report.stepCompleted(number, { conclusion, outcome: conclusion, outputs, name });
  }
}
