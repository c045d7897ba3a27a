import type {
  ParallelStepDefinition,
  RunStepDefinition,
  StepDefinition,
  Template,
  UsesStepDefinition,
} from '../model/workflow.ts';
import type { Availability } from './expression.ts';
import { identifierProblem, type ProblemList } from './problems.ts';
import {
  isTrue,
  itemsOf,
  literalText,
  presentValueOf,
  readCondition,
  valueOf,
} from './template-access.ts';

/** `owner/repo[/path]@ref`. */
const REMOTE_ACTION = /^[^/\\@]+[/\\][^@]+@.+$/;

/** The steps of a job or of a composite action; what their schema cannot say is checked here. */
export function readSteps(
  template: Template | undefined,
  available: Availability,
  problems: ProblemList,
): readonly StepDefinition[] {
  const reader = new StepsReader(available, problems);
  return itemsOf(template).flatMap((item) => reader.step(item) ?? []);
}

class StepsReader {
  readonly #available: Availability;
  readonly #problems: ProblemList;
  /** Ids that came before, as they were written. */
  readonly #ids = new Set<string>();
  readonly #upperIds = new Set<string>();

  constructor(available: Availability, problems: ProblemList) {
    this.#available = available;
    this.#problems = problems;
  }

  step(template: Template): StepDefinition | undefined {
    const id = this.#id(valueOf(template, 'id'));
    const active = this.#activeStep(template, id);
    if (active !== undefined) {
      return active;
    }
    const { at } = template;
    const name = presentValueOf(template, 'name');
    const continueOnError = presentValueOf(template, 'continue-on-error');
    const common = { at, id, name, continueOnError };
    const wait = valueOf(template, 'wait');
    if (wait !== undefined) {
      return {
        ...common,
        kind: 'wait',
        ids: itemsOf(wait).flatMap((item) => this.#target(item, id)),
      };
    }
    const waitAll = valueOf(template, 'wait-all');
    if (waitAll !== undefined) {
      if (waitAll.kind === 'literal' && waitAll.value === false) {
        this.#problems.add(waitAll.at, "The value of 'wait-all' must be true or omitted");
      }
      return { ...common, kind: 'wait' };
    }
    const cancel = valueOf(template, 'cancel');
    if (cancel !== undefined) {
      return { ...common, kind: 'cancel', target: this.#target(cancel, id)[0] ?? '' };
    }
    const parallel = valueOf(template, 'parallel');
    return parallel === undefined ? undefined : this.#parallel(template, parallel);
  }

  #activeStep(
    template: Template,
    id: string | undefined,
  ): RunStepDefinition | UsesStepDefinition | undefined {
    const get = (name: string): Template | undefined => presentValueOf(template, name);
    const common = {
      at: template.at,
      id,
      name: get('name'),
      if: readCondition(valueOf(template, 'if'), this.#available, this.#problems),
      env: get('env'),
      continueOnError: get('continue-on-error'),
      timeoutMinutes: get('timeout-minutes'),
      background: isTrue(get('background')),
    };
    const run = valueOf(template, 'run');
    if (run !== undefined) {
      return {
        ...common,
        kind: 'run',
        run,
        shell: get('shell'),
        workingDirectory: get('working-directory'),
      };
    }
    const uses = valueOf(template, 'uses');
    if (uses === undefined) {
      return undefined;
    }
    return { ...common, kind: 'uses', uses: this.#uses(uses), with: get('with') };
  }

  #uses(template: Template): string {
    const uses = literalText(template) ?? '';
    const isLocal = /^(?:\.[/\\]|\$\/|docker:\/\/)/.test(uses);
    if (!isLocal && !REMOTE_ACTION.test(uses)) {
      this.#problems.add(template.at, `Expected format {org}/{repo}[/path]@ref. Actual '${uses}'`);
    }
    return uses;
  }

  #id(template: Template | undefined): string | undefined {
    const id = literalText(template);
    if (template === undefined || id === undefined) {
      return undefined;
    }
    const problem =
      identifierProblem(id) ??
      (this.#upperIds.has(id.toUpperCase())
        ? `The identifier '${id}' may not be used more than once within the same scope.`
        : undefined);
    if (problem !== undefined) {
      this.#problems.add(template.at, problem);
      return undefined;
    }
    this.#ids.add(id);
    this.#upperIds.add(id.toUpperCase());
    return id;
  }

  #target(template: Template, ownId: string | undefined): readonly string[] {
    const target = literalText(template) ?? '';
    if (target.startsWith('__')) {
      this.#problems.add(
        template.at,
        `The identifier '${target}' is invalid. IDs starting with '__' are reserved.`,
      );
    } else if (ownId !== undefined && target.toLowerCase() === ownId.toLowerCase()) {
      this.#problems.add(template.at, `Step '${ownId}' cannot reference itself`);
    } else if (!this.#ids.has(target)) {
      this.#problems.add(template.at, `Step references unknown step ID '${target}'`);
    }
    return [target];
  }

  #parallel(template: Template, parallel: Template): ParallelStepDefinition {
    const steps: (RunStepDefinition | UsesStepDefinition)[] = [];
    for (const item of itemsOf(parallel)) {
      if (valueOf(item, 'background') !== undefined) {
        this.#problems.add(
          template.at,
          "'background' is not allowed inside a parallel block. Steps in a parallel block are automatically run as background steps.",
        );
      }
      const step = this.step(item);
      if (step?.kind === 'run' || step?.kind === 'uses') {
        steps.push(step);
      } else if (step?.kind === 'parallel') {
        this.#problems.add(template.at, "Nested 'parallel' blocks are not allowed.");
      } else if (step !== undefined) {
        const key = ['wait', 'wait-all', 'cancel'].find(
          (name) => valueOf(item, name) !== undefined,
        );
        this.#problems.add(template.at, `'${key ?? ''}' is not allowed inside a parallel block.`);
      }
    }
    return { kind: 'parallel', at: template.at, steps };
  }
}
