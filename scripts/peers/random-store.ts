import type {
  PeerModel,
  PeerReference,
  PeerSubjectType,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';
import type { Random } from '../../verify/workload/random.ts';
import { nextVersion, randomModel } from './random-model.ts';

const IDS = ['1', '2', '3'];

/** A version of a store's model, and the tuples that were written while it was the latest. */
export type StoreVersion = { readonly model: PeerModel; readonly tuples: readonly PeerTuple[] };

export type PeerQuestion = {
  readonly object: PeerReference;
  readonly relation: string;
  readonly subject: PeerReference;
};

/** Questions with what they share. */
export type QuestionBatch = {
  /** Position of the version that they name. */
  readonly version: number;
  /** Whether it does not admit some of what is stored. */
  readonly hasMisfits: boolean;
  readonly context: Readonly<Record<string, unknown>>;
  readonly contextual: readonly PeerTuple[];
  readonly questions: readonly PeerQuestion[];
};

/** One version up to `versionsMax`: what those before admitted stays stored. `accepts` says whether both systems take a model. */
export async function randomVersions(
  random: Random,
  versionsMax: number,
  accepts: (model: PeerModel) => Promise<boolean>,
): Promise<readonly StoreVersion[]> {
  const versions: StoreVersion[] = [];
  const keys = new Set<string>();
  const isPlain = versionsMax === 1 || random.chance(0.25);
  const count = isPlain ? 1 : 2 + random.integer(versionsMax - 1);
  for (let at = 0; at < count; at++) {
    const before = versions.at(-1)?.model;
    let model: PeerModel;
    do model = before === undefined ? randomModel(random) : nextVersion(random, before);
    while (!(await accepts(model)));
    const tuples: PeerTuple[] = [];
    for (let tries = 60 + random.integer(120); tries > 0; tries--) {
      const tuple = randomTuple(random, model);
      const key = tupleKey(tuple);
      if (keys.has(key)) continue;
      keys.add(key);
      tuples.push(tuple);
    }
    versions.push({ model, tuples });
  }
  return versions;
}

/** Batches of questions about a store, until there are `count`. */
export function randomQuestions(
  random: Random,
  versions: readonly StoreVersion[],
  count: number,
): readonly QuestionBatch[] {
  const stored = versions.flatMap(({ tuples }) => tuples);
  const misfits = versions.map(({ model }) => stored.some((tuple) => !admits(model, tuple)));
  const batches: QuestionBatch[] = [];
  for (let left = count; left > 0; left -= BATCH) {
    const version = random.integer(versions.length);
    const model = versions[version]?.model as PeerModel;
    const contextual = new Map<string, PeerTuple>();
    if (random.chance(0.25)) {
      for (let more = 1 + random.integer(5); more > 0; more--) {
        const tuple = randomTuple(random, model);
        contextual.set(tupleKey(tuple), tuple);
      }
      // Refused by both where the version does not admit it.
      if (random.chance(0.05)) {
        const tuple = random.pick(stored);
        contextual.set(tupleKey(tuple), tuple);
      }
    }
    const tuples = [...stored, ...contextual.values()];
    batches.push({
      version,
      hasMisfits: misfits[version] === true,
      context: randomContext(random, 0.85),
      contextual: [...contextual.values()],
      questions: Array.from({ length: Math.min(BATCH, left) }, () =>
        randomQuestion(random, model, tuples),
      ),
    });
  }
  return batches;
}

const BATCH = 25;

/** Half of them begin at a tuple: its object, often its relation, and mostly somebody it grants to, so that many are allowed. */
function randomQuestion(
  random: Random,
  model: PeerModel,
  tuples: readonly PeerTuple[],
): PeerQuestion {
  // A slip now and then: an error there, and never an allow here.
  const isSlip = random.chance(0.01);
  const seen = random.pick(tuples);
  const isNear = random.chance(0.7);
  const types = model.types.filter(({ relations }) => relations.length > 0);
  const type = types.find(({ name }) => isNear && name === seen.object.type) ?? random.pick(types);
  const object = isNear ? seen.object : { type: type.name, id: random.pick(IDS), relation: '' };
  const isSame = isNear && random.chance(0.5);
  const relation = isSame ? seen.relation : random.pick(type.relations).name;
  const { subject } = random.chance(0.8) ? seen : random.pick(tuples);
  const isKnown = isNear ? random.chance(0.75) : random.chance(0.3);
  const asked = subject.id === '*' ? { ...subject, id: random.pick(IDS) } : subject;
  return {
    object,
    relation: isSlip ? 'nothing' : relation,
    subject: isKnown ? asked : randomSubject(random, model),
  };
}

function randomSubject(random: Random, model: PeerModel): PeerReference {
  const type = random.pick(model.types);
  const id = random.pick(IDS);
  const isSet = type.relations.length > 0 && random.chance(0.5);
  return { type: type.name, id, relation: isSet ? random.pick(type.relations).name : '' };
}

/** A tuple that the model admits. */
function randomTuple(random: Random, model: PeerModel): PeerTuple {
  for (;;) {
    const type = random.pick(model.types);
    if (type.relations.length === 0) continue;
    const { name: relation, subjects } = random.pick(type.relations);
    if (subjects.length === 0) continue;
    const subject = random.pick(subjects);
    const isWildcard = subject.relation === '*';
    const tuple: PeerTuple = {
      object: { type: type.name, id: random.pick(IDS), relation: '' },
      relation,
      subject: {
        type: subject.type,
        id: isWildcard ? '*' : random.pick(IDS),
        relation: isWildcard ? '' : subject.relation,
      },
      condition: subject.condition,
      context: subject.condition === undefined ? undefined : ofCondition(random, subject.condition),
      expiresAt: undefined,
      place: '',
    };
    // OpenFGA stores no tuple that says what is so anyway.
    const says = `${tuple.object.type}:${tuple.object.id}#${relation}`;
    if (referenceText(tuple.subject) !== says) return tuple;
  }
}

const NAMES = ['ann', 'bob', 'cem'];

/** Values that a tuple brings along for its condition. */
function ofCondition(random: Random, condition: string): Readonly<Record<string, unknown>> {
  if (condition === 'below') return { top: random.integer(10) };
  if (condition === 'named') return { names: NAMES.filter(() => random.chance(0.5)) };
  return random.chance(0.3) ? { is_open: random.chance(0.7) } : {};
}

/** Values of a question, each there with a probability. */
function randomContext(random: Random, probability: number): Readonly<Record<string, unknown>> {
  return {
    ...(random.chance(probability) ? { level: random.integer(10) } : {}),
    ...(random.chance(probability) ? { name: random.pick(NAMES) } : {}),
    ...(random.chance(probability) ? { is_open: random.chance(0.7) } : {}),
  };
}

/** Whether the model lets the tuple be stored. */
export function admits(
  model: PeerModel,
  { object, relation, subject, condition }: PeerTuple,
): boolean {
  const declared = model.types
    .find(({ name }) => name === object.type)
    ?.relations.find(({ name }) => name === relation);
  const wanted = subject.id === '*' ? '*' : subject.relation;
  return (
    declared?.subjects.some(
      (one: PeerSubjectType) =>
        one.type === subject.type && one.relation === wanted && one.condition === condition,
    ) === true
  );
}

/** `type:id` or `type:id#relation`. */
export function referenceText({ type, id, relation }: PeerReference): string {
  return `${type}:${id}${relation === '' ? '' : `#${relation}`}`;
}

/** What identifies a tuple. */
export function tupleKey({ object, relation, subject }: PeerTuple): string {
  return `${referenceText(object)}#${relation}@${referenceText(subject)}`;
}
