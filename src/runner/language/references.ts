import { type Expr, data } from '@actions/expressions';
import { Literal } from '@actions/expressions/ast';
import type {
  Condition,
  JobDefinition,
  StepDefinition,
  StepsJobDefinition,
  Template,
  Workflow,
} from '../model/workflow.ts';
import {
  ContextAccess,
  FunctionCall,
  Grouping,
  IndexAccess,
  Logical,
  walkExpression,
} from './expression.ts';
import { entriesOf } from './template-access.ts';
import { expressionsIn, partsOfStep } from './template-expressions.ts';

/**
 * Names of the secrets that a job can read, upper-case and sorted; undefined when they cannot be known:
 * `toJSON(secrets)`, `secrets[expression]`, `secrets: inherit`. GITHUB_TOKEN is one of
 * them if named, also as `github.token`.
 * Secrets that a called workflow gets are those that its caller names.
 */
export function secretsReferencedBy(
  workflow: Workflow,
  job: JobDefinition,
): readonly string[] | undefined {
  if (job.kind === 'call' && job.secrets === 'inherit') {
    return undefined;
  }
  return secretsNamedIn([...partsOfWorkflow(workflow), ...partsOfJob(job)]);
}

/** The same of these templates and conditions alone. */
export function secretsNamedIn(parts: readonly ReferencePart[]): readonly string[] | undefined {
  const names = new Set<string>();
  for (const { tree } of expressionsIn(parts)) {
    if (!addSecrets(tree, names)) {
      return undefined;
    }
  }
  return [...names].toSorted();
}

/**
 * Names of the secrets that any job of a run can read, those of called workflows included, upper-case and
 * sorted; undefined when they cannot be known. `secrets: inherit` names none itself: the called jobs do.
 */
export function secretsOfRun(workflow: Workflow): readonly string[] | undefined {
  const names = new Set<string>();
  for (const job of workflow.jobs.values()) {
    const isInherited = job.kind === 'call' && job.secrets === 'inherit';
    const own = secretsReferencedBy(workflow, isInherited ? { ...job, secrets: undefined } : job);
    const below = job.kind === 'call' ? secretsOfRun(job.called) : [];
    if (own === undefined || below === undefined) return undefined;
    for (const name of [...own, ...below]) names.add(name);
  }
  return [...names].toSorted();
}

/** Ids of the steps whose results a template reads by name, lower-case. */
export function stepsReferencedBy(template: Template): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { tree } of expressionsIn([template])) {
    walkExpression(tree, (node) => {
      if (!(node instanceof IndexAccess) || !isContext(node.expr, 'steps')) return;
      const id = literalIndex(node);
      if (id !== undefined) ids.add(id.toLowerCase());
    });
  }
  return ids;
}

function partsOfWorkflow(workflow: Workflow): readonly ReferencePart[] {
  return [workflow.env, workflow.defaults.shell, workflow.defaults.workingDirectory];
}

type ReferencePart = Template | Condition | undefined;

function partsOfJob(job: JobDefinition): readonly ReferencePart[] {
  const { matrix, failFast, maxParallel } = job.strategy ?? {};
  const common = [job.name, job.if, matrix, failFast, maxParallel, job.concurrency];
  if (job.kind === 'call') {
    return [...common, job.with, job.secrets === 'inherit' ? undefined : job.secrets];
  }
  return [
    ...common,
    job.runsOn,
    job.env,
    job.defaults.shell,
    job.defaults.workingDirectory,
    job.timeoutMinutes,
    job.cancelTimeoutMinutes,
    job.continueOnError,
    job.environment,
    job.container,
    job.services,
    ...job.outputs.values(),
    ...job.steps.flatMap(partsOfStep),
  ];
}

/** false when some secret cannot be reported. */
function addSecrets(tree: Expr, names: Set<string>): boolean {
  const named = new Set<Expr>();
  let isKnown = true;
  walkExpression(tree, (node) => {
    if (node instanceof IndexAccess && isContext(node.expr, 'secrets')) {
      const name = literalIndex(node);
      if (name !== undefined) {
        named.add(node.expr);
        names.add(name.toUpperCase());
      }
    } else if (node instanceof IndexAccess && isToken(node)) {
      names.add('GITHUB_TOKEN');
    } else if (isContext(node, 'secrets') && !named.has(node)) {
      isKnown = false;
    }
  });
  return isKnown;
}

function isContext(node: Expr, name: string): boolean {
  return node instanceof ContextAccess && node.name.lexeme.toLowerCase() === name;
}

function isToken(node: IndexAccess): boolean {
  return isContext(node.expr, 'github') && literalIndex(node)?.toLowerCase() === 'token';
}

function literalIndex(node: IndexAccess): string | undefined {
  return node.index instanceof Literal && node.index.literal instanceof data.StringData
    ? node.index.literal.value
    : undefined;
}

/** Values that whoever opens an issue or a pull request, or starts the run, can choose. */
const UNTRUSTED_GITHUB: readonly RegExp[] = [
  /^github\.head_ref$/,
  /^github\.event(?:\.(?:issue|pull_request|discussion|comment|review|review_comment|release|milestone)\.(?:title|body|name|tag_name|description))$/,
  /^github\.event\.(?:head_commit|commits\.\*)\.(?:message|author\.(?:email|name)|committer\.(?:email|name))$/,
  /^github\.event\.pages\.\*\.page_name$/,
  /^github\.event\.pull_request\.head\.(?:ref|label|repo\.default_branch)$/,
  /^github\.event\.workflow_run\.(?:head_branch|display_title|head_commit\.message)$/,
  /^github\.event\.(?:inputs|client_payload)(?:\..*)?$/,
  /^github(?:\.event)?$/,
  /^inputs(?:\..*)?$/,
];

/**
 * One warning for each expression in a script that puts in what others may have chosen: the shell would
 * run it. Inputs of the workflow that are booleans or numbers, and what a comparison or a search gives, are none of
 * that. Source: GitHub's "Script injections".
 */
export function scriptInjectionWarnings(
  workflow: Workflow,
  job: StepsJobDefinition,
): readonly string[] {
  const harmless = harmlessInputs(workflow);
  return job.steps.flatMap((step) => warningsOfStep(step, harmless));
}

/**
 * Paths of the inputs that are a boolean or a number, however the workflow is started. `github.event` is the caller's
 * where there may be one.
 */
function harmlessInputs({ dispatchInputs, call }: Workflow): ReadonlySet<string> {
  const names = new Set<string>();
  const others = new Set<string>();
  for (const [name, { type }] of [...dispatchInputs, ...(call?.inputs ?? [])]) {
    (type === 'boolean' || type === 'number' ? names : others).add(name.toLowerCase());
  }
  const roots = call === undefined ? ['inputs', 'github.event.inputs'] : ['inputs'];
  const harmless = [...names].filter((name) => !others.has(name));
  return new Set(roots.flatMap((root) => harmless.map((name) => `${root}.${name}`)));
}

function warningsOfStep(step: StepDefinition, harmless: ReadonlySet<string>): readonly string[] {
  switch (step.kind) {
    case 'parallel':
      return step.steps.flatMap((part) => warningsOfStep(part, harmless));
    case 'run':
      return warningsOfScript(step.run, 'run', harmless);
    case 'uses': {
      const isScript = /^actions\/github-script@/i.test(step.uses);
      const script = entriesOf(step.with).find(({ name }) => name === 'script')?.value;
      return isScript && script !== undefined ? warningsOfScript(script, 'script', harmless) : [];
    }
    default:
      return [];
  }
}

function warningsOfScript(
  script: Template,
  key: string,
  harmless: ReadonlySet<string>,
): readonly string[] {
  const paths = new Set<string>();
  for (const { tree } of expressionsIn([script])) {
    for (const path of pathsShownBy(tree)) {
      if (!harmless.has(path) && UNTRUSTED_GITHUB.some((pattern) => pattern.test(path))) {
        paths.add(path);
      }
    }
  }
  const { line } = script.at;
  return [...paths].map(
    (path) =>
      `Line ${line}: \${{ ${path} }} in '${key}' becomes part of the script, which would run what it holds; pass it through 'env' and use the variable`,
  );
}

/** Functions that give a boolean or a hash, whatever they are given. */
const TEXTLESS_FUNCTIONS: ReadonlySet<string> = new Set([
  'contains',
  'startswith',
  'endswith',
  'success',
  'failure',
  'always',
  'cancelled',
  'hashfiles',
]);

/** Paths such as `github.event.issue.title` whose text the result may hold, lower-case; `*` for filters and computed indexes. */
function pathsShownBy(tree: Expr): readonly string[] {
  const path = pathOf(tree);
  return path === undefined ? partsShownBy(tree).flatMap(pathsShownBy) : [path.toLowerCase()];
}

/** The parts of a node whose text may become part of its own. */
function partsShownBy(node: Expr): readonly Expr[] {
  if (node instanceof Grouping) return [node.group];
  // A function of which all are taken: `x.*` of what it gives.
  if (node instanceof IndexAccess) return [node.expr];
  // What ends an `&&` early is empty, false, null or a number.
  if (node instanceof Logical)
    return node.operator.lexeme === '&&' ? node.args.slice(-1) : node.args;
  if (!(node instanceof FunctionCall)) return [];
  const name = node.functionName.lexeme.toLowerCase();
  if (TEXTLESS_FUNCTIONS.has(name)) return [];
  const isCase = name === 'case';
  return node.args.filter(
    (_, index) => !isCase || index % 2 === 1 || index === node.args.length - 1,
  );
}

function pathOf(node: Expr): string | undefined {
  if (node instanceof ContextAccess) return node.name.lexeme;
  if (node instanceof Grouping) return pathOf(node.group);
  if (!(node instanceof IndexAccess)) return undefined;
  const base = pathOf(node.expr);
  return base === undefined ? undefined : `${base}.${literalIndex(node) ?? '*'}`;
}
