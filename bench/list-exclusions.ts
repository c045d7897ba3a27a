import { parseGate } from '../src/language/gate/parse-gate.ts';
import {
  BANNED_WORLD_GATE,
  BannedWorld,
  LISTED_RELATIONS,
  type ListedRelation,
} from './dataset/banned-world.ts';
/**
 * Yields objects a CPU-second of the service for lists over `but not` and `and`, over HTTP JSON: whole ones of workspace.v1 and first
 * pages of 1,000 of gatehouse.v1; beside them lists of `viewer`, which has neither. Services of several checkouts take turns of a round in
 * each case; `toFirst` is the median of the rounds' ratios to the first of them. Every list is compared with the right one before.
 * `answersByDefault` says whether the default read budget suffices for it; what is measured has a budget that suffices for all.
 * Run: npm run bench -- list-exclusions [-- DIRECTORY…]; name the build before first. BENCH_SIZES (800,10000,100000) are numbers of
 * documents, BENCH_SECONDS (2) the length of a turn, BENCH_ROUNDS (5). Prints one JSON line a size, relation, call and checkout.
 */
import { LoadClient } from './harness/client.ts';
import { closedLoop, postRequest } from './harness/closed-loop.ts';
import { ADMIN_SECRET, type MeasuredService, startMeasured } from './harness/measured-service.ts';
import { median } from './harness/median.ts';
import { mustHold } from './harness/micro-bench.ts';
import { createProject, fill, LIST_OBJECTS_PATH } from './harness/target.ts';

const SIZES = (process.env['BENCH_SIZES'] ?? '800,10000,100000').split(',').map(Number);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const PROJECT = 'bans';
const READ_BUDGET = 1_000_000_000;
const PAGE = 1_000;
/** Documents of a list from which on callers take turns, so that none waits for others: it may take seconds. */
const LONG_LIST = 50_000;
const CALLERS = 4;
const directories = process.argv.length > 2 ? process.argv.slice(2) : [process.cwd()];

type Call = 'whole' | 'page';
const PATHS: Readonly<Record<Call, string>> = {
  whole: LIST_OBJECTS_PATH,
  page: '/gatehouse.v1.QueryService/ListObjects',
};

/** One thing that is measured, with a question of each user; the same for all checkouts. */
type Case = {
  readonly world: BannedWorld;
  readonly relation: ListedRelation;
  readonly call: Call;
  readonly questions: readonly {
    readonly body: object;
    readonly request: Buffer;
    readonly ids: readonly string[];
    readonly isAll: boolean;
  }[];
};

function caseOf(world: BannedWorld, relation: ListedRelation, call: Call): Case {
  const scope = { project_id: PROJECT, tenant_id: tenantOf(world) };
  const questions = world.users.map((user, u) => {
    const asked = { namespace: 'doc', relation };
    const body =
      call === 'whole'
        ? { ...scope, ...asked, subject_user_id: user }
        : { scope, ...asked, subject: { user_id: user }, page_size: PAGE };
    const all = world.list(relation, u);
    const ids = call === 'whole' ? all : all.slice(0, PAGE);
    const request = postRequest(PATHS[call], JSON.stringify(body));
    return { body, request, ids, isAll: ids.length === all.length };
  });
  return { world, relation, call, questions };
}

function tenantOf({ documents }: BannedWorld): string {
  return `of-${documents}`;
}

type Contestant = {
  readonly service: MeasuredService;
  /** By case: whether the default budget suffices, and what each round came to. */
  readonly answersByDefault: boolean[];
  readonly perCpuSecond: number[][];
  readonly latenciesMs: number[][];
};

/** Fills the service with all worlds, and fails unless it answers each question right once its budget is raised. */
async function prepare(
  { service, answersByDefault }: Contestant,
  worlds: readonly BannedWorld[],
  cases: readonly Case[],
): Promise<void> {
  const client = new LoadClient({ baseUrl: `http://127.0.0.1:${service.port()}`, connections: 8 });
  await createProject(client, ADMIN_SECRET, PROJECT, parseGate(BANNED_WORLD_GATE).json);
  for (const world of worlds) {
    const scope = { project_id: PROJECT, tenant_id: tenantOf(world) };
    await fill(client, world.tuples, scope);
  }
  for (const { call, questions } of cases) {
    const answers = questions.map(({ body }) => isAnswered(client, PATHS[call], body));
    answersByDefault.push((await Promise.all(answers)).every((one) => one));
  }
  const raised = { id: PROJECT, max_check_reads: READ_BUDGET };
  const secret = { 'x-admin-secret': ADMIN_SECRET };
  await client.call('/workspace.v1.AdminService/UpdateProject', raised, secret);
  for (const { relation, call, questions } of cases) {
    for (const { body, ids, isAll } of questions) {
      const answer = await client.call(PATHS[call], body);
      const found = (answer['object_ids'] as readonly string[] | undefined) ?? [];
      mustHold(found.join() === ids.join(), `${relation}, ${call}: ${found.length} objects`);
      mustHold(call === 'whole' || !answer['next_page_token'] === isAll, 'whether pages follow');
    }
  }
  await client.close();
}

/** False where the read budget ended. Errors: anything else that is not an answer. */
async function isAnswered(client: LoadClient, path: string, body: object): Promise<boolean> {
  try {
    await client.call(path, body);
    return true;
  } catch (error) {
    if ((error as Error).message.includes('BUDGET_EXHAUSTED')) return false;
    throw error;
  }
}

async function turn(contestant: Contestant, one: Case, at: number): Promise<void> {
  const { service, perCpuSecond, latenciesMs } = contestant;
  const { questions, world } = one;
  const callers = one.call === 'whole' && world.documents >= LONG_LIST ? 1 : CALLERS;
  let asked = 0;
  let objects = 0;
  const before = service.cpu().service;
  const result = await closedLoop(service.port(), callers, SECONDS, () => {
    const question = questions[asked++ % questions.length];
    objects += question?.ids.length ?? 0;
    return question?.request;
  });
  perCpuSecond[at]?.push(objects / (service.cpu().service - before));
  latenciesMs[at]?.push(median(result.latencies));
}

function reportCase(one: Case, contestants: readonly Contestant[], at: number): void {
  // The first round warms all up.
  const ratesOf = ({ perCpuSecond }: Contestant): readonly number[] =>
    perCpuSecond[at]?.slice(1) ?? [];
  const first = contestants.flatMap((contestant, i) => (i === 0 ? ratesOf(contestant) : []));
  for (const contestant of contestants) {
    const rates = ratesOf(contestant);
    const ratio = median(rates.map((rate, round) => rate / (first[round] ?? Number.NaN)));
    const figures = {
      documents: one.world.documents,
      relation: one.relation,
      call: one.call,
      objects: one.questions[0]?.ids.length,
      objectsPerCpuSecond: Math.round(median(rates)),
      medianMs: Number(median(contestant.latenciesMs[at]?.slice(1) ?? []).toPrecision(3)),
      toFirst: Number(ratio.toFixed(3)),
      answersByDefault: contestant.answersByDefault[at],
    };
    const { directory } = contestant.service;
    console.log(JSON.stringify({ bench: 'list-exclusions', directory, ...figures }));
  }
}

const worlds = SIZES.map((documents) => new BannedWorld(documents));
const cases = worlds.flatMap((world) =>
  LISTED_RELATIONS.flatMap((relation) => [
    caseOf(world, relation, 'whole'),
    caseOf(world, relation, 'page'),
  ]),
);
const contestants: Contestant[] = [];
try {
  for (const directory of directories) {
    const service = await startMeasured(directory, { GATEWAY_REQUEST_TIMEOUT_MS: '600000' });
    const [perCpuSecond, latenciesMs] = [cases.map(() => []), cases.map(() => [])];
    const contestant = { service, answersByDefault: [], perCpuSecond, latenciesMs };
    contestants.push(contestant);
    await prepare(contestant, worlds, cases).catch((cause: unknown) => {
      throw new Error(`${directory} does not answer as it should`, { cause });
    });
  }
  for (const [at, one] of cases.entries()) {
    for (let round = 0; round <= ROUNDS; round++) {
      const inTurns = round % 2 === 0 ? contestants : contestants.toReversed();
      for (const contestant of inTurns) await turn(contestant, one, at);
    }
    reportCase(one, contestants, at);
  }
} finally {
  for (const { service } of contestants) await service.stop();
}
process.exit(0);
