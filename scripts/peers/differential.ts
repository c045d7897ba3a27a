import type { ImportedModel } from '../../src/language/peers/import-peer-model.ts';
import type { PeerModel } from '../../src/language/peers/peer-model.ts';
import { createRandom } from '../../verify/workload/random.ts';
import { type Answers, causeByRules } from './difference-causes.ts';
import { GatehouseStore, type GatehouseTarget, importedModel } from './gatehouse-store.ts';
import { OpenFgaStore, type PeerAnswer } from './openfga-server.ts';
import {
  admits,
  type PeerQuestion,
  type QuestionBatch,
  randomQuestions,
  randomVersions,
  referenceText,
  type StoreVersion,
} from './random-store.ts';

/** Questions of one store, at most. */
const STORE_QUESTIONS = 500;
/** Questions of a store that are asked one by one as well. */
const SINGLE_QUESTIONS = 10;

export type DifferentialOptions = {
  readonly openFgaUrl: string;
  readonly gatehouse: GatehouseTarget;
  readonly seed: string;
  readonly questions: number;
  /** Of a store's model, at most. */
  readonly versionsMax: number;
  /** Receives a line about each difference. */
  readonly report: (line: string) => void;
};

/** What was asked, and what became of it. */
export type DifferentialCounts = {
  stores: number;
  /** Models that OpenFGA or the importer did not take: another was drawn. */
  refusedThere: number;
  refusedHere: number;
  questions: number;
  allowed: number;
  /** With a userset as the subject. */
  usersets: number;
  /** Of a version that does not admit some of what is stored. */
  withMisfits: number;
  contextual: number;
  /** Errors there; never an allow here, but for those below. */
  errors: number;
  /** Allowed on one side only. */
  differences: number;
  /** Denied there and undecided here, or an error on one side: no allow differs. */
  errorsDiffer: number;
  /** Allowed on one side only for a cause that is known: one of CAUSES, or of those that plain rules show. */
  readonly causes: Map<string, number>;
};

/** Why an answer may differ, by what OpenFGA says. */
const CAUSES: readonly { readonly name: string; readonly says: RegExp }[] = [
  {
    name: 'depth: it goes no further than 25',
    says: /resolution_depth|resolution is too complex/i,
  },
  { name: 'time: it gives up', says: /deadline|timeout|throttled/i },
];

/**
 * Draws stores from a seed, brings each into both systems, and asks both the same. An allow on one side only is a
 * difference, whatever its cause; those of CAUSES are counted apart. Cost: some thousand questions a second.
 */
export async function runDifferential(options: DifferentialOptions): Promise<DifferentialCounts> {
  const counts: DifferentialCounts = {
    stores: 0,
    refusedThere: 0,
    refusedHere: 0,
    questions: 0,
    allowed: 0,
    usersets: 0,
    withMisfits: 0,
    contextual: 0,
    errors: 0,
    differences: 0,
    errorsDiffer: 0,
    causes: new Map(),
  };
  for (let at = 0; counts.questions < options.questions; at++) {
    await compareStore(options, `${options.seed}/${at}`, counts);
    counts.stores += 1;
  }
  return counts;
}

async function compareStore(
  options: DifferentialOptions,
  seed: string,
  counts: DifferentialCounts,
): Promise<void> {
  const random = createRandom(seed);
  const projectId = `p${random.integer(2 ** 31)}-${random.integer(2 ** 31)}`;
  const theirs = await OpenFgaStore.create(options.openFgaUrl, projectId);
  const ours = await GatehouseStore.create(options.gatehouse, projectId);
  const imported = new Map<PeerModel, ImportedModel>();
  const probe = await OpenFgaStore.create(options.openFgaUrl, `${projectId}-probe`);
  const accepts = async (model: PeerModel): Promise<boolean> => {
    if (!(await probe.writeModel(model))) {
      counts.refusedThere += 1;
      return false;
    }
    const here = importedModel(model);
    imported.set(model, here);
    if (here.document !== undefined) return true;
    counts.refusedHere += 1;
    const [problem] = here.problems;
    options.report(`refused here: seed ${seed}: ${problem?.place}: ${problem?.text}`);
    return false;
  };
  const versions = await randomVersions(random, options.versionsMax, accepts);
  for (const { model, tuples } of versions) {
    await theirs.writeModel(model);
    await ours.writeModel(imported.get(model) as ImportedModel);
    if (tuples.length === 0) continue;
    await theirs.write(tuples);
    await ours.write(tuples);
  }
  const left = options.questions - counts.questions;
  const batches = randomQuestions(random, versions, Math.min(left, STORE_QUESTIONS));
  for (const batch of batches.flatMap((one, at) => (at === 0 ? alone(one) : [one]))) {
    const [there, here] = await Promise.all([theirs.ask(batch), ours.ask(batch)]);
    batch.questions.forEach((question, at) => {
      const answers = { there: there[at] as PeerAnswer, here: here[at] as PeerAnswer };
      count(counts, batch, question, answers);
      const difference = differenceOf(answers, counts, () =>
        causeByRules({ versions, batch, question, answers }),
      );
      if (difference === '') return;
      options.report(
        `${difference}: seed ${seed}: ${describe(versions, batch, question, answers)}`,
      );
    });
  }
}

/** The first questions of a batch one by one, which takes another way through the service, and the others. */
function alone(batch: QuestionBatch): readonly QuestionBatch[] {
  const singles = batch.questions.slice(0, SINGLE_QUESTIONS);
  const others = batch.questions.slice(SINGLE_QUESTIONS);
  return [...singles.map((one) => [one]), ...(others.length === 0 ? [] : [others])].map(
    (questions) => ({ ...batch, questions }),
  );
}

function count(
  counts: DifferentialCounts,
  batch: QuestionBatch,
  { subject }: PeerQuestion,
  { there }: Answers,
): void {
  counts.questions += 1;
  if (there.allowed) counts.allowed += 1;
  if (subject.relation !== '') counts.usersets += 1;
  if (batch.hasMisfits) counts.withMisfits += 1;
  if (batch.contextual.length > 0) counts.contextual += 1;
  if (there.error !== '') counts.errors += 1;
}

/** '' where both say the same, or differ in their errors only. */
function differenceOf(
  { there, here }: Answers,
  counts: DifferentialCounts,
  causeByRulesOf: () => string | undefined,
): string {
  if (there.allowed === here.allowed) {
    if ((there.error === '') !== (here.error === '')) counts.errorsDiffer += 1;
    return '';
  }
  const said = CAUSES.find(({ says }) => says.test(there.error))?.name;
  const cause = said ?? causeByRulesOf();
  if (cause !== undefined) {
    counts.causes.set(cause, (counts.causes.get(cause) ?? 0) + 1);
    return '';
  }
  counts.differences += 1;
  return here.allowed ? 'ALLOWED HERE ONLY' : 'allowed there only';
}

function describe(
  versions: readonly StoreVersion[],
  batch: QuestionBatch,
  { object, relation, subject }: PeerQuestion,
  { there, here }: Answers,
): string {
  const model = versions[batch.version]?.model as PeerModel;
  const stored = versions.flatMap(({ tuples }) => tuples);
  const misfits = stored.filter((tuple) => !admits(model, tuple)).length;
  return [
    `version ${batch.version + 1} of ${versions.length}, ${misfits} misfits,`,
    `${referenceText(subject)} ${relation} ${referenceText(object)},`,
    `context ${JSON.stringify(batch.context)}, ${batch.contextual.length} contextual,`,
    `there ${there.allowed} ${there.error}, here ${here.allowed} ${here.error}`,
  ].join(' ');
}
