import type { ActionDefinition, Condition, FileProblem, Template } from '../model/workflow.ts';
import { ACTION_FILE, COMPOSITE_IF, RUNS_IF } from './action-schema.ts';
import { parseExpression, usesStatusFunction } from './expression.ts';
import { ProblemList } from './problems.ts';
import { readSteps } from './read-steps.ts';
import { readBySchema } from './schema-reader.ts';
import {
  entriesOf,
  isTrue,
  literalText,
  presentValueOf,
  readCondition,
  valueOf,
} from './template-access.ts';
import { readYaml } from './yaml-tree.ts';

/**
 * Reads an action.yml. There is an action exactly when there is no problem; `path` names the file in
 * problems. Never throws.
 */
export function readAction(
  text: string,
  path: string,
): { readonly action?: ActionDefinition; readonly problems: readonly FileProblem[] } {
  const problems = new ProblemList();
  const tree = readYaml(text, problems);
  const template = tree === undefined ? undefined : readBySchema(tree, ACTION_FILE, problems);
  const action =
    template !== undefined && problems.isEmpty ? actionFrom(template, path, problems) : undefined;
  return action !== undefined && problems.isEmpty
    ? { action, problems: [] }
    : { problems: problems.all.map((problem) => ({ ...problem, file: path })) };
}

function actionFrom(root: Template, path: string, problems: ProblemList): ActionDefinition {
  const runs = valueOf(root, 'runs');
  const using = literalText(valueOf(runs, 'using'))?.toLowerCase() ?? '';
  return {
    name: literalText(valueOf(root, 'name')) ?? path,
    inputs: new Map(
      entriesOf(valueOf(root, 'inputs')).map(({ name, value }) => [
        name,
        {
          required: isTrue(valueOf(value, 'required')),
          default: presentValueOf(value, 'default'),
          deprecationMessage: literalText(valueOf(value, 'deprecationMessage')),
        },
      ]),
    ),
    outputs: new Map(
      entriesOf(valueOf(root, 'outputs')).map(({ name, value }) => [
        name,
        presentValueOf(value, 'value'),
      ]),
    ),
    runs: runsFrom(runs, using, problems),
  };
}

function runsFrom(
  runs: Template | undefined,
  using: string,
  problems: ProblemList,
): ActionDefinition['runs'] {
  const text = (name: string): string | undefined => literalText(valueOf(runs, name));
  const needed = using === 'composite' ? 'steps' : using === 'docker' ? 'image' : 'main';
  if (runs !== undefined && valueOf(runs, needed) === undefined) {
    problems.add(runs.at, `Required property is missing: ${needed}`);
  }
  if (using === 'composite') {
    return { kind: 'composite', steps: readSteps(valueOf(runs, 'steps'), COMPOSITE_IF, problems) };
  }
  if (using === 'docker') {
    return {
      kind: 'docker',
      image: text('image') ?? '',
      args: presentValueOf(runs, 'args'),
      entrypoint: text('entrypoint'),
      env: presentValueOf(runs, 'env'),
    };
  }
  return {
    kind: 'javascript',
    using,
    main: text('main') ?? '',
    pre: text('pre'),
    preIf: readBareCondition(valueOf(runs, 'pre-if'), problems),
    post: text('post'),
    postIf: readBareCondition(valueOf(runs, 'post-if'), problems),
  };
}

/** `pre-if` and `post-if` hold after a failure, too: no `success() &&` is added to them, as on GitHub. */
function readBareCondition(
  template: Template | undefined,
  problems: ProblemList,
): Condition | undefined {
  const condition = readCondition(template, RUNS_IF, problems);
  if (condition === undefined || !problems.isEmpty) {
    return condition;
  }
  return usesStatusFunction(parseExpression(condition.source, RUNS_IF))
    ? condition
    : { ...condition, source: `always() && (${condition.source})` };
}
