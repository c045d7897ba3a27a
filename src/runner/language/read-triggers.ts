import type {
  InputType,
  Template,
  WorkflowCall,
  WorkflowInput,
  WorkflowTrigger,
} from '../model/workflow.ts';
import { cronProblem } from './cron.ts';
import { isNumberText } from './dispatch-inputs.ts';
import { filterPattern } from './filter-pattern.ts';
import { INPUTS_MAX } from './limits.ts';
import { timezoneProblem } from './local-time.ts';
import { identifierProblem, type ProblemList } from './problems.ts';
import {
  entriesOf,
  isTrue,
  itemsOf,
  literalText,
  presentValueOf,
  textsOf,
  valueOf,
} from './template-access.ts';

/** `on:` in each of its three forms, in the order of the file. */
export function readTriggers(
  on: Template | undefined,
  problems: ProblemList,
): readonly WorkflowTrigger[] {
  if (on?.kind !== 'mapping') {
    return (textsOf(on) ?? []).map((event) => ({ event }));
  }
  return entriesOf(on).map(({ name, value }) => readTrigger(name, value, problems));
}

function readTrigger(event: string, value: Template, problems: ProblemList): WorkflowTrigger {
  if (event === 'schedule') {
    return { event, crons: itemsOf(value).map((item) => readCron(item, problems)) };
  }
  const texts = (name: string): readonly string[] | undefined => textsOf(valueOf(value, name));
  for (const name of PATTERN_KEYS) {
    checkPatterns(valueOf(value, name), problems);
  }
  for (const name of ['branches', 'tags', 'paths']) {
    const ignore = entriesOf(value).find((entry) => entry.name === `${name}-ignore`);
    if (ignore !== undefined && valueOf(value, name) !== undefined) {
      problems.add(
        ignore.at,
        `You may only define one of '${name}' and '${name}-ignore' for a single event`,
      );
    }
  }
  return {
    event,
    types: texts('types'),
    branches: texts('branches'),
    branchesIgnore: texts('branches-ignore'),
    tags: texts('tags'),
    tagsIgnore: texts('tags-ignore'),
    paths: texts('paths'),
    pathsIgnore: texts('paths-ignore'),
    workflows: texts('workflows'),
  };
}

const PATTERN_KEYS: readonly string[] = [
  'branches',
  'branches-ignore',
  'tags',
  'tags-ignore',
  'paths',
  'paths-ignore',
];

function checkPatterns(list: Template | undefined, problems: ProblemList): void {
  for (const item of itemsOf(list)) {
    const pattern = literalText(item) ?? '';
    const { problem } = filterPattern(pattern);
    if (problem !== undefined) {
      problems.add(item.at, `Invalid pattern '${pattern}': ${problem}`);
    }
  }
}

function readCron(
  item: Template,
  problems: ProblemList,
): { readonly cron: string; readonly timezone?: string | undefined } {
  const cronTemplate = valueOf(item, 'cron');
  const cron = literalText(cronTemplate) ?? '';
  const timezoneTemplate = valueOf(item, 'timezone');
  const timezone = literalText(timezoneTemplate);
  const problem = cronProblem(cron);
  if (problem !== undefined && cronTemplate !== undefined) {
    problems.add(cronTemplate.at, problem);
  }
  const zoneProblem = timezone === undefined ? undefined : timezoneProblem(timezone);
  if (zoneProblem !== undefined && timezoneTemplate !== undefined) {
    problems.add(timezoneTemplate.at, zoneProblem);
  }
  return { cron, timezone };
}

/** Inputs of `on.workflow_dispatch`. */
export function readDispatchInputs(
  on: Template | undefined,
  problems: ProblemList,
): ReadonlyMap<string, WorkflowInput> {
  const inputs = valueOf(valueOf(on, 'workflow_dispatch'), 'inputs');
  const result = new Map<string, WorkflowInput>();
  const entries = entriesOf(inputs);
  if (inputs !== undefined && entries.length > INPUTS_MAX) {
    problems.add(inputs.at, `The maximum number of inputs is ${INPUTS_MAX}`);
  }
  for (const { name, at, value } of entries) {
    const problem = identifierProblem(name);
    if (problem !== undefined) {
      problems.add(at, problem);
    }
    result.set(name, readDispatchInput(value, problems));
  }
  return result;
}

function readDispatchInput(input: Template, problems: ProblemList): WorkflowInput {
  const type = (literalText(valueOf(input, 'type')) ?? 'string') as InputType;
  const options = textsOf(valueOf(input, 'options'));
  const defaultTemplate = presentValueOf(input, 'default');
  const defaultText = literalText(defaultTemplate);
  if (type === 'choice' && (options ?? []).length === 0) {
    problems.add(input.at, "Missing 'options' for choice input");
  }
  if (type !== 'choice' && options !== undefined) {
    problems.add(input.at, "Input type is not 'choice', but 'options' is defined");
  }
  if (defaultTemplate !== undefined && defaultText !== undefined) {
    const isOutside = type === 'choice' && options !== undefined && !options.includes(defaultText);
    if (isOutside || !isOfType(defaultText, type)) {
      problems.add(defaultTemplate.at, `Unexpected value '${defaultText}'`);
    }
  }
  return {
    description: literalText(valueOf(input, 'description')),
    required: isTrue(valueOf(input, 'required')),
    default: defaultText,
    type,
    options,
  };
}

function isOfType(text: string, type: InputType): boolean {
  if (type === 'boolean') {
    return text === 'true' || text === 'false';
  }
  return type !== 'number' || isNumberText(text);
}

/** `on.workflow_call` in any form; undefined when the workflow cannot be called. */
export function readCall(
  on: Template | undefined,
  problems: ProblemList,
): WorkflowCall | undefined {
  const call = valueOf(on, 'workflow_call');
  if (call === undefined) {
    const isListed = on?.kind !== 'mapping' && textsOf(on)?.includes('workflow_call') === true;
    return isListed ? { inputs: new Map(), secrets: new Map(), outputs: new Map() } : undefined;
  }
  const inputs = entriesOf(valueOf(call, 'inputs')).map(
    ({ name, at, value }) => [name, readCallInput(name, at, value, problems)] as const,
  );
  const secrets = entriesOf(valueOf(call, 'secrets')).map(
    ({ name, value }) => [name, { required: isTrue(valueOf(value, 'required')) }] as const,
  );
  const outputs = entriesOf(valueOf(call, 'outputs')).flatMap(({ name, value }) => {
    const template = valueOf(value, 'value');
    return template === undefined ? [] : [[name, template] as const];
  });
  return { inputs: new Map(inputs), secrets: new Map(secrets), outputs: new Map(outputs) };
}

function readCallInput(
  name: string,
  at: Template['at'],
  input: Template,
  problems: ProblemList,
): WorkflowInput & { readonly defaultTemplate?: Template | undefined } {
  const problem = identifierProblem(name);
  if (problem !== undefined) {
    problems.add(at, problem);
  }
  const type = (literalText(valueOf(input, 'type')) ?? 'string') as InputType;
  const defaultTemplate = presentValueOf(input, 'default');
  if (
    defaultTemplate?.kind === 'literal' &&
    type !== 'string' &&
    typeof defaultTemplate.value !== type
  ) {
    problems.add(defaultTemplate.at, `Unexpected value '${literalText(defaultTemplate) ?? ''}'`);
  }
  return {
    description: literalText(valueOf(input, 'description')),
    required: isTrue(valueOf(input, 'required')),
    default: literalText(defaultTemplate),
    type,
    defaultTemplate:
      defaultTemplate?.kind === 'literal' && type === 'string'
        ? { ...defaultTemplate, value: literalText(defaultTemplate) ?? '' }
        : defaultTemplate,
  };
}
