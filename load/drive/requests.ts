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
import type { Send, Transport } from './transport.ts';

/** A request to send, and what is wrong with an answer of 200 to it: undefined when nothing is. */
export type Request = {
  readonly operation: string;
  readonly send: Send;
  readonly faultOf: (body: Buffer) => string | undefined;
};

/** The next request of one kind. */
type Source = () => Request;

const QUESTIONS = 10_000;
const LISTS = 50;
const FAULT_BYTES_MAX = 200;

const wrong = (body: Buffer): string => `wrong: ${body.toString('utf8', 0, FAULT_BYTES_MAX)}`;
const anything = (): undefined => undefined;

/**
 * Requests of a plan by their weights, in an order that `of` generators share: each begins elsewhere in the same questions.
 * Prepares the bodies: 10,000 questions for each kind.
 */
export function requestsOf(
  plan: LoadPlan,
  transport: Transport,
  generator: { readonly index: number; readonly of: number; readonly runId: string },
): Source {
  const world = plan.data === undefined ? undefined : new World(plan.data.scale, plan.data.seed);
  const sources = plan.operations.map((operation) => ({
    weight: operation.weight,
    next: sourceOf(operation, { plan, world, transport, generator }),
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

type Parts = {
  readonly plan: LoadPlan;
  readonly world: World | undefined;
  readonly transport: Transport;
  readonly generator: { readonly index: number; readonly of: number; readonly runId: string };
};

function sourceOf(operation: Operation, parts: Parts): Source {
  const { plan, world, transport, generator } = parts;
  const scope = { project_id: plan.project, tenant_id: plan.tenant };
  const { name } = operation;
  const inTurn = (requests: readonly Request[]): Source => {
    let i = Math.floor((generator.index / generator.of) * requests.length);
    return () => requests[i++ % requests.length] as Request;
  };
  if (operation.kind === 'request') {
    const body = Buffer.from(JSON.stringify({ ...scope, ...operation.body }));
    const send = transport.prepare(operation.path, body);
    return () => ({ operation: name, send, faultOf: anything });
  }
  if (operation.kind === 'write') return writes(name, operation.tuples, scope, parts);
  // Plans are held to it.
  if (world === undefined) throw new Error(`${operation.kind} needs data`);
  if (operation.kind === 'list_objects') return inTurn(lists(name, world, scope, transport));
  const questions = mixedQuestions(world, QUESTIONS, operation.spread);
  if (operation.kind === 'check') {
    return inTurn(
      checkBodies(questions, scope).map((body, i) => ({
        operation: name,
        send: transport.prepare(CHECK_PATH, body),
        faultOf: (answer) =>
          answer.equals(ALLOWED) === questions[i]?.allow ? undefined : wrong(answer),
      })),
    );
  }
  const { items } = operation;
  return inTurn(
    batchBodies(questions, Math.min(items, questions.length), scope).map((body, b) => {
      const expected = batchAnswer(questions.slice(b * items, (b + 1) * items));
      return {
        operation: name,
        send: transport.prepare(BATCH_CHECK_PATH, body),
        faultOf: (answer) => (answer.equals(expected) ? undefined : wrong(answer)),
      };
    }),
  );
}

/** Lists of some users, whole. */
function lists(
  name: string,
  world: World,
  scope: Record<string, string>,
  transport: Transport,
): Request[] {
  return Array.from({ length: LISTS }, () => {
    const user = world.random.below(world.users);
    const docs = world.docFolder.flatMap((_, doc) =>
      world.canView(doc, user) ? [World.docId(doc)] : [],
    );
    const expected = JSON.stringify({ object_ids: docs.toSorted((a, b) => (a < b ? -1 : 1)) });
    const body = { ...scope, namespace: 'doc', relation: 'viewer', subject_user_id: `u${user}` };
    return {
      operation: name,
      send: transport.prepare(LIST_OBJECTS_PATH, Buffer.from(JSON.stringify(body))),
      faultOf: (answer) => {
        const text = answer.toString();
        // An answer without objects leaves the field out.
        return text === expected || (docs.length === 0 && text === '{}')
          ? undefined
          : wrong(answer);
      },
    };
  });
}

/** Inserts new documents of a user who is never asked about, and deletes them with the next write, so that nothing grows. */
function writes(
  name: string,
  count: number,
  scope: Record<string, string>,
  { transport, generator }: Parts,
): Source {
  let turn = 0;
  return () => {
    const round = turn >> 1;
    const op = turn % 2 === 0 ? 'OP_INSERT' : 'OP_DELETE';
    turn += 1;
    const updates = Array.from({ length: count }, (_, i) => ({
      op,
      tuple: {
        namespace: 'doc',
        object_id: `load-${generator.runId}-${generator.index}-${round}-${i}`,
        relation: 'viewer',
        subject: { user_id: 'load-writer' },
      },
    }));
    const body = Buffer.from(JSON.stringify({ ...scope, updates }));
    return { operation: name, send: transport.prepare(WRITE_PATH, body), faultOf: anything };
  };
}
