import { usage } from '../../command-line/parse-words.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf, scopeOf } from '../core/connection.ts';
import { type DecisionJson, decisionExit, decisionWord } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer } from '../core/rows.ts';
import { type TupleJson, textOfTupleJson, tupleJson } from '../core/tuple-json.ts';

type DerivationNodeJson = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly step: string;
  readonly tuple?: TupleJson;
  readonly contextual?: boolean;
  readonly children?: readonly number[];
};
type DerivationJson = { readonly nodes: readonly DerivationNodeJson[] };
type ObstacleJson = {
  readonly kind: string;
  readonly message: string;
  readonly tuple?: TupleJson;
  readonly derivation?: DerivationJson;
  readonly missing_inputs?: readonly string[];
};
type ExplanationJson = DecisionJson & {
  readonly derivation?: DerivationJson;
  readonly holds_until?: string;
  readonly obstacles?: readonly ObstacleJson[];
  readonly remedies?: readonly TupleJson[];
  readonly truncated?: boolean;
  readonly member_user_id?: string;
  readonly membership?: DerivationJson;
  readonly unknown_relation?: boolean;
};

const REMEDIES = { default: 10, max: 100 } as const;
/** Deeper than any derivation that the service finds. A circle of children would have no end. */
const DEPTH_MAX = 1_000;

/** `explain`. */
export async function explain(line: CliLine): Promise<number> {
  const [text, ...more] = line.words;
  if (text === undefined || more.length > 0) {
    throw usage('explain: one question, please');
  }
  const question = tupleJson(text);
  const max = integerOfOption('remedies', line.text('remedies'), 1, REMEDIES.max);
  const connection = await connectionOf(line);
  const body = {
    scope: scopeOf(line, connection),
    question,
    remedies_max: max ?? REMEDIES.default,
  };
  const answer = await call<ExplanationJson>(connection, 'gatehouse.v1.QueryService/Explain', body);
  showAnswer(line, answer, () => wordsOf(text, answer));
  return decisionExit(answer);
}

/** An explanation in readable form, one entry a line. */
export function wordsOf(question: string, answer: ExplanationJson): readonly string[] {
  const { derivation, obstacles = [], remedies = [] } = answer;
  const member =
    (answer.member_user_id ?? '') === ''
      ? []
      : [`  through user:${answer.member_user_id}, a member:`, ...treeOf(answer.membership, 2)];
  return [
    `${decisionWord(answer)} ${question}`,
    ...(answer.unknown_relation === true ? ['  the model has no such relation'] : []),
    ...member,
    ...treeOf(derivation, 1),
    ...(answer.holds_until === undefined ? [] : [`  until ${answer.holds_until}`]),
    ...obstacles.flatMap(obstacleLines),
    ...(remedies.length === 0 ? [] : ['  any of these would allow it:']),
    ...remedies.map((tuple) => `    ${grantText(tuple)}`),
    ...(answer.truncated === true ? ['  there may be more'] : []),
  ];
}

function obstacleLines({
  kind,
  message,
  tuple,
  derivation,
  missing_inputs: missing = [],
}: ObstacleJson): readonly string[] {
  const word = kind.replace('OBSTACLE_KIND_', '').toLowerCase().replaceAll('_', ' ');
  // A derivation of one node adds nothing to its tuple.
  const tree = (derivation?.nodes.length ?? 0) > 1 ? treeOf(derivation, 2) : [];
  const by = tuple === undefined || tree.length > 0 ? [] : [`    ${grantText(tuple)}`];
  const inputs = missing.length === 0 ? [] : [`    inputs that are missing: ${missing.join(', ')}`];
  return [`  ${word}: ${message}`, ...by, ...inputs, ...tree];
}

function treeOf(derivation: DerivationJson | undefined, indent: number): readonly string[] {
  const nodes = derivation?.nodes ?? [];
  const lines: string[] = [];
  const walk = (index: number, depth: number): void => {
    const node = nodes[index];
    if (node === undefined || depth > DEPTH_MAX || lines.length > nodes.length) return;
    const { namespace, object_id: id, relation, step, tuple, contextual, children = [] } = node;
    const word = step.replace('DERIVATION_STEP_', '').toLowerCase().replaceAll('_', ' ');
    const by = tuple === undefined ? '' : `: ${grantText(tuple)}`;
    const end = contextual === true ? ', for this question alone' : '';
    lines.push(`${'  '.repeat(indent + depth)}${namespace}:${id}#${relation}  ${word}${by}${end}`);
    for (const child of children) walk(child, depth + 1);
  };
  walk(0, 0);
  return lines;
}

function grantText(tuple: TupleJson): string {
  const { expires_at: end, condition_name: condition = '' } = tuple;
  const until = end === undefined ? '' : ` until ${end}`;
  return `${textOfTupleJson(tuple)}${condition === '' ? '' : ` if ${condition}`}${until}`;
}
