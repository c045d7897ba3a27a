import type {
  JobDefinition,
  RunDefaults,
  StepsJobDefinition,
  StrategyDefinition,
  Template,
} from '../model/workflow.ts';
import { identifierProblem, type ProblemList } from './problems.ts';
import { readSteps } from './read-steps.ts';
import {
  entriesOf,
  hasExpression,
  itemsOf,
  jsonFromTemplate,
  literalText,
  presentValueOf,
  readCondition,
  textsOf,
  valueOf,
} from './template-access.ts';
import { JOB_IF, STEP_IF } from './workflow-schema.ts';

type Entry = ReturnType<typeof entriesOf>[number];
type CommonParts = Omit<Extract<JobDefinition, { kind: 'call' }>, 'kind' | 'uses' | 'called'>;
/** A calling job before what it calls was read. */
export type PendingCall = CommonParts & {
  readonly kind: 'pending';
  readonly uses: string;
  readonly usesAt: Template['at'];
};

/**
 * One entry of `jobs:`. Its schema was checked, which is GitHub's and lets a job without steps pass; their
 * service refuses it.
 */
export function readJob(entry: Entry, problems: ProblemList): StepsJobDefinition | PendingCall {
  const { name: key, at, value } = entry;
  const problem = identifierProblem(key);
  if (problem !== undefined) {
    problems.add(at, problem);
  }
  const get = (name: string): Template | undefined => presentValueOf(value, name);
  const permissions = get('permissions');
  const name = get('name');
  const common = {
    key,
    at,
    name: literalText(name) === '' ? undefined : name,
    needs: textsOf(get('needs')) ?? [],
    if: readCondition(valueOf(value, 'if'), JOB_IF, problems),
    strategy: readStrategy(get('strategy'), problems),
    concurrency: get('concurrency'),
    permissions: permissions === undefined ? undefined : jsonFromTemplate(permissions),
  };
  const uses = valueOf(value, 'uses');
  if (uses !== undefined) {
    const secrets = get('secrets');
    return {
      ...common,
      kind: 'pending',
      uses: literalText(uses) ?? '',
      usesAt: uses.at,
      with: get('with'),
      secrets: secrets?.kind === 'literal' ? 'inherit' : secrets,
    };
  }
  const steps = get('steps');
  if (itemsOf(steps).length === 0) {
    problems.add(
      at,
      `The job '${key}' has nothing to do: give it steps, or uses with a workflow to call`,
    );
  }
  const runsOn = valueOf(value, 'runs-on') ?? { kind: 'literal', value: '', at };
  checkRunnerGroup(runsOn, problems);
  checkImage(get('container'), problems);
  for (const service of entriesOf(get('services'))) {
    checkImage(service.value, problems);
  }
  return {
    ...common,
    kind: 'steps',
    runsOn,
    env: get('env'),
    defaults: readDefaults(get('defaults')),
    timeoutMinutes: get('timeout-minutes'),
    cancelTimeoutMinutes: get('cancel-timeout-minutes'),
    continueOnError: get('continue-on-error'),
    environment: get('environment'),
    container: get('container'),
    services: get('services'),
    outputs: new Map(entriesOf(get('outputs')).map((output) => [output.name, output.value])),
    steps: readSteps(steps, STEP_IF, problems),
  };
}

/** `defaults.run`. */
export function readDefaults(defaults: Template | undefined): RunDefaults {
  const run = valueOf(defaults, 'run');
  return {
    shell: presentValueOf(run, 'shell'),
    workingDirectory: presentValueOf(run, 'working-directory'),
  };
}

function readStrategy(
  strategy: Template | undefined,
  problems: ProblemList,
): StrategyDefinition | undefined {
  if (strategy === undefined) {
    return undefined;
  }
  const matrix = presentValueOf(strategy, 'matrix');
  for (const { name, value } of entriesOf(matrix)) {
    if (name !== 'include' && name !== 'exclude' && isEmptyList(value)) {
      problems.add(value.at, `Matrix vector '${name}' does not contain any values`);
    }
  }
  return {
    matrix,
    failFast: presentValueOf(strategy, 'fail-fast'),
    maxParallel: presentValueOf(strategy, 'max-parallel'),
  };
}

function isEmptyList(template: Template): boolean {
  return template.kind === 'sequence' && template.items.length === 0;
}

/** Where nothing is an expression, a container needs an image. */
function checkImage(container: Template | undefined, problems: ProblemList): void {
  if (
    container?.kind === 'mapping' &&
    valueOf(container, 'image') === undefined &&
    !hasExpression(container)
  ) {
    problems.add(container.at, 'Container image cannot be empty');
  }
}

const GROUP_PREFIXES: readonly string[] = ['org', 'organization', 'ent', 'enterprise'];

function checkRunnerGroup(runsOn: Template, problems: ProblemList): void {
  const template = valueOf(runsOn, 'group');
  const group = literalText(template);
  if (template === undefined || group === undefined) {
    return;
  }
  const [prefix = '', name, ...rest] = group.split('/');
  if (name === undefined) {
    return;
  }
  if (rest.length > 0 || !GROUP_PREFIXES.includes(prefix)) {
    problems.add(
      template.at,
      `Invalid runs-on group name '${group}'. Please use 'organization/' or 'enterprise/' prefix to target a single runner group.`,
    );
  } else if (name === '') {
    problems.add(template.at, `Invalid runs-on group name '${group}'.`);
  }
}
