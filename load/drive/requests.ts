import {
  ALLOWED,
  BATCH_CHECK_PATH,
  CHECK_PATH,
  LIST_OBJECTS_PATH,
  WRITE_PATH,
  batchAnswer,
  batchBodies,
  checkBodies,
} from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import type { LoadPlan, Operation } from './load-plan.ts';

/** A request to send, and what is wrong with an answer of 200 to it: undefined when nothing is. */
export type Request = {
  readonly operation: string;
  readonly path: string;
  readonly body: string | Buffer;
  readonly faultOf: (answer: Buffer) => string | undefined;
};

/** A generator among several; the id of the run makes what it writes its own. */
type Generator = { readonly index: number; readonly of: number; readonly runId: string };
/** The next request. */
type Source = () => Request;
type Scope = { readonly project_id: string; readonly tenant_id: string };

const QUESTIONS = 10_000;
const LISTS = 50;

const wrong = (answer: Buffer): string => `wrong: ${answer.toString('utf8', 0, 200)}`;
const anything = (): undefined => undefined;

/**
 * Requests of a plan by their weights, in an order that `of` generators share: each begins elsewhere in the same questions.
 * Prepares the bodies: 10,000 questions for each kind.
 */
export function requestsOf(plan: LoadPlan, generator: Generator): Source {
  const world = plan.data === undefined ? undefined : new World(plan.data.scale, plan.data.seed);
  const scope = { project_id: plan.project, tenant_id: plan.tenant };
  const sources = plan.operations.map((operation) => ({
    weight: operation.weight,
    next: sourceOf(operation, world, scope, generator),
  }));
  const total = sources.reduce((sum, { weight }) => sum + weight, 0);
  // By the fractional parts of multiples of the golden ratio: evenly mixed, also over a few requests, and without a seed.
  let turn = generator.index / generator.of;
  return () => {
    turn = (turn + 0.6180339887498949) % 1;
    let left = turn * total;
    const chosen = sources.find(({ weight }) => (left -= weight) < 0) ?? sources[0];
    if (chosen === undefined) throw new Error('a plan has no operation');
    return chosen.next();
  };
}

function sourceOf(
  operation: Operation,
  world: World | undefined,
  scope: Scope,
  generator: Generator,
): Source {
  const { name } = operation;
  if (operation.kind === 'write') return writes(name, operation.tuples, scope, generator);
  const requests = requestsOfKind(operation, world, scope);
  let i = Math.floor((generator.index / generator.of) * requests.length);
  return () => ({ operation: name, ...(requests[i++ % requests.length] as Question) });
}

type Question = Omit<Request, 'operation'>;

/** Requests to ask in turn, and again. */
function requestsOfKind(
  operation: Exclude<Operation, { kind: 'write' }>,
  world: World | undefined,
  scope: Scope,
): readonly Question[] {
  if (operation.kind === 'request') {
    const body = JSON.stringify({ ...scope, ...operation.body });
    return [{ path: operation.path, body, faultOf: anything }];
  }
  // Plans are held to it.
  if (world === undefined) throw new Error(`${operation.kind} needs data`);
  if (operation.kind === 'list_objects') return lists(world, scope);
  const questions = mixedQuestions(world, QUESTIONS, operation.spread);
  if (operation.kind === 'check') {
    return checkBodies(questions, scope).map((body, i) => ({
      path: CHECK_PATH,
      body,
      faultOf: (answer) =>
        answer.equals(ALLOWED) === questions[i]?.allow ? undefined : wrong(answer),
    }));
  }
  const { items } = operation;
  return batchBodies(questions, items, scope).map((body, b) => {
    const expected = batchAnswer(questions.slice(b * items, (b + 1) * items));
    return {
      path: BATCH_CHECK_PATH,
      body,
      faultOf: (answer) => (answer.equals(expected) ? undefined : wrong(answer)),
    };
  });
}

/** Lists of some users, whole. */
function lists(world: World, scope: Scope): readonly Question[] {
  return Array.from({ length: LISTS }, () => {
    const user = world.random.below(world.users);
    const docs = world.docFolder.flatMap((_, doc) =>
      world.canView(doc, user) ? [World.docId(doc)] : [],
    );
    const objects = { object_ids: docs.toSorted((a, b) => (a < b ? -1 : 1)) };
    // An answer without objects leaves the field out.
    const expected = docs.length === 0 ? '{}' : JSON.stringify(objects);
    const asked = { namespace: 'doc', relation: 'viewer', subject_user_id: `u${user}` };
    return {
      path: LIST_OBJECTS_PATH,
      body: JSON.stringify({ ...scope, ...asked }),
      faultOf: (answer) => (answer.toString() === expected ? undefined : wrong(answer)),
    };
  });
}

/** Inserts new documents of a user who is never asked about, and deletes them with the next write, so that nothing grows. */
function writes(operation: string, count: number, scope: Scope, generator: Generator): Source {
  let turn = 0;
  return () => {
    const id = `load-${generator.runId}-${generator.index}-${turn >> 1}`;
    const op = turn++ % 2 === 0 ? 'OP_INSERT' : 'OP_DELETE';
    const subject = { user_id: 'load-writer' };
    const updates = Array.from({ length: count }, (_, i) => ({
      op,
      tuple: { namespace: 'doc', object_id: `${id}-${i}`, relation: 'viewer', subject },
    }));
    const body = JSON.stringify({ ...scope, updates });
    return { operation, path: WRITE_PATH, body, faultOf: anything };
  };
}
