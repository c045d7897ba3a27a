/**
 * Yields checks a second of the engine alone by the shape of the model, one thread, ids interned: allowed and denied apart, every
 * answer compared with the one that the shape was made for. `toDirect` is what the median is of that of direct grants in the same run;
 * rounds of all shapes alternate, so that each sees the same neighbours.
 * Run: npm run bench -- engine-shapes [-- ROUNDS]. Prints one JSON line a shape.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { type LazyContext, parseContext } from '../src/model/conditions.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import type { RelationTuple, Subject } from '../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/clock.ts';

const ROUNDS = Number(process.argv[2] ?? 15);
const DOCUMENTS = 4_000;
const USERS = 20_000;
const QUESTIONS = 4_000;
/** Passes over the questions in a round. */
const PASSES = 5;
const READ_BUDGET = 10_000;
const FAR_US = BigInt(Date.now() + 86_400_000) * 1000n;
const OVER_US = BigInt(Date.now() - 86_400_000) * 1000n;

type Shape = {
  readonly name: string;
  readonly model: object;
  readonly tuples: readonly RelationTuple[];
  /** The i-th question: an allowed one, and one that is denied. */
  readonly allowed: (i: number) => readonly [document: number, user: number];
  readonly denied: (i: number) => readonly [document: number, user: number];
  /** The context of the i-th question, as text: whether it is parsed is part of what is measured. */
  readonly contextOf?: (i: number) => string;
  /** The contexts are at hand as objects: what is measured is the condition alone. */
  readonly isParsed?: boolean;
};

const user = (id: number | string): Subject => ({ kind: 'user', userId: `u${id}` });
const set = (namespace: string, objectId: string, relation: string): Subject => ({
  kind: 'set',
  namespace,
  objectId,
  relation,
});
const tuple = (
  namespace: string,
  objectId: string,
  relation: string,
  subject: Subject,
  payload: Partial<RelationTuple> = {},
): RelationTuple => ({ namespace, objectId, relation, subject, ...payload });

const documents = Array.from({ length: DOCUMENTS }, (_, d) => d);
/** Three users hold each document; the next ones do not. */
const holder = (d: number, k: number): number => (d * 7 + k * 31) % USERS;
const direct = (relation = 'viewer', payload: Partial<RelationTuple> = {}): RelationTuple[] =>
  documents.flatMap((d) =>
    [0, 1, 2].map((k) => tuple('doc', `d${d}`, relation, user(holder(d, k)), payload)),
  );
const at = (i: number): number => (i * 7919) % DOCUMENTS;
const byHolder = (i: number): readonly [number, number] => [at(i), holder(at(i), i % 3)];
/** Who holds the next document, and not this one. Nobody who is denied is unknown: that would need no look at the object. */
const byOther = (i: number): readonly [number, number] => [
  at(i),
  holder((at(i) + 1) % DOCUMENTS, i % 3),
];

const unionOf = (...union: object[]): object => ({ union });
const THIS = { this: {} };
const computed = (relation: string): object => ({ computed: relation });
const walk = (tupleset: string, relation: string): object => ({
  tuple_to_userset: { tupleset, computed: relation },
});
const modelOf = (doc: object, others: object = {}): object => ({
  schema_version: 1,
  namespaces: {
    group: { relations: { member: {} } },
    doc: { relations: { banned: {}, trained: {}, parent: {}, ...doc } },
    ...others,
  },
});

const GROUPS = 20;
const MEMBERS = 1_000;
/** Documents of a few groups with a thousand members each. */
const wideGroup = (): RelationTuple[] => [
  ...documents.map((d) =>
    tuple('doc', `d${d}`, 'viewer', set('group', `g${d % GROUPS}`, 'member')),
  ),
  ...Array.from({ length: GROUPS * MEMBERS }, (_, m) =>
    tuple(
      'group',
      `g${m % GROUPS}`,
      'member',
      user(Math.floor(m / GROUPS) * GROUPS + (m % GROUPS)),
    ),
  ),
];
const DEPTH = 8;
const CHAINS = 1_000;
/** Documents of chains of eight groups, with ten members in the last one. */
const deepGroups = (): RelationTuple[] => [
  ...documents.map((d) =>
    tuple('doc', `d${d}`, 'viewer', set('group', `c${d % CHAINS}-0`, 'member')),
  ),
  ...Array.from({ length: CHAINS * (DEPTH - 1) }, (_, i) => {
    const [chain, step] = [i % CHAINS, Math.floor(i / CHAINS)];
    const next = set('group', `c${chain}-${step + 1}`, 'member');
    return tuple('group', `c${chain}-${step}`, 'member', next);
  }),
  ...Array.from({ length: CHAINS * 10 }, (_, i) =>
    tuple(
      'group',
      `c${i % CHAINS}-${DEPTH - 1}`,
      'member',
      user((i % CHAINS) * 10 + Math.floor(i / CHAINS)),
    ),
  ),
];
/** The same depth over parents: folders in folders, with ten viewers of the outermost. */
const deepFolders = (): RelationTuple[] => [
  ...documents.map((d) => tuple('doc', `d${d}`, 'parent', set('folder', `c${d % CHAINS}-0`, ''))),
  ...Array.from({ length: CHAINS * (DEPTH - 1) }, (_, i) => {
    const [chain, step] = [i % CHAINS, Math.floor(i / CHAINS)];
    return tuple(
      'folder',
      `c${chain}-${step}`,
      'parent',
      set('folder', `c${chain}-${step + 1}`, ''),
    );
  }),
  ...Array.from({ length: CHAINS * 10 }, (_, i) =>
    tuple(
      'folder',
      `c${i % CHAINS}-${DEPTH - 1}`,
      'viewer',
      user((i % CHAINS) * 10 + Math.floor(i / CHAINS)),
    ),
  ),
];
const PARENTS = 32;
/** Documents in 32 folders of 2,000 each; one viewer in each folder. */
const wideArrow = (): RelationTuple[] => [
  ...documents.flatMap((d) =>
    Array.from({ length: PARENTS }, (_, k) =>
      tuple('doc', `d${d}`, 'parent', set('folder', `f${(d * 13 + k * 61) % 2_000}`, '')),
    ),
  ),
  ...Array.from({ length: 2_000 }, (_, f) => tuple('folder', `f${f}`, 'viewer', user(f))),
];
const byGroup = (i: number): readonly [number, number] => {
  const d = at(i);
  return [d, ((i * 31) % MEMBERS) * GROUPS + (d % GROUPS)];
};
const byChain = (i: number): readonly [number, number] => [at(i), (at(i) % CHAINS) * 10 + (i % 10)];
const byFolder = (i: number): readonly [number, number] => [
  at(i),
  (at(i) * 13 + (i % PARENTS) * 61) % 2_000,
];
const byOtherChain = (i: number): readonly [number, number] => [
  at(i),
  ((at(i) + 1) % CHAINS) * 10 + (i % 10),
];
/** 7 is none of the distances between the parents of a document. */
const byOtherFolder = (i: number): readonly [number, number] => [at(i), (at(i) * 13 + 7) % 2_000];
const folderModel = modelOf(
  { viewer: unionOf(THIS, walk('parent', 'viewer')) },
  { folder: { relations: { parent: {}, viewer: unionOf(THIS, walk('parent', 'viewer')) } } },
);

const AGES = Array.from({ length: 64 }, (_, i) => `{"age":${18 + i},"region":"r${i}"}`);
const byAge = (i: number): string => AGES[i % AGES.length] as string;

const shapes: readonly Shape[] = [
  {
    name: 'direct',
    model: modelOf({ viewer: {} }),
    tuples: direct(),
    allowed: byHolder,
    denied: byOther,
  },
  {
    name: 'wide group',
    model: modelOf({ viewer: {} }),
    tuples: wideGroup(),
    allowed: byGroup,
    denied: (i) => byGroup(i + 1).toSpliced(0, 1, at(i)) as [number, number],
  },
  {
    name: 'deep groups',
    model: modelOf({ viewer: {} }),
    tuples: deepGroups(),
    allowed: byChain,
    denied: byOtherChain,
  },
  {
    name: 'deep folders',
    model: folderModel,
    tuples: deepFolders(),
    allowed: byChain,
    denied: byOtherChain,
  },
  {
    name: 'wide arrow',
    model: folderModel,
    tuples: wideArrow(),
    allowed: byFolder,
    denied: byOtherFolder,
  },
  {
    name: 'exclusion',
    model: modelOf({ viewer: { exclusion: { include: THIS, exclude: computed('banned') } } }),
    tuples: [
      ...direct(),
      ...documents.map((d) => tuple('doc', `d${d}`, 'banned', user(holder(d, 2)))),
    ],
    allowed: (i) => [at(i), holder(at(i), i % 2)],
    denied: (i) => [at(i), holder(at(i), 2)],
  },
  {
    name: 'intersection',
    model: modelOf({
      reader: {},
      viewer: { intersection: [computed('reader'), computed('trained')] },
    }),
    tuples: [
      ...direct('reader'),
      ...documents.flatMap((d) =>
        [0, 1].map((k) => tuple('doc', `d${d}`, 'trained', user(holder(d, k)))),
      ),
    ],
    allowed: (i) => [at(i), holder(at(i), i % 2)],
    denied: (i) => [at(i), holder(at(i), 2)],
  },
  {
    name: 'expiry ahead',
    model: modelOf({ viewer: {} }),
    tuples: direct('viewer', { expiresAtUs: FAR_US }),
    allowed: byHolder,
    denied: byOther,
  },
  {
    name: 'expired',
    model: modelOf({ viewer: {} }),
    tuples: [
      ...direct('viewer', { expiresAtUs: OVER_US }),
      ...documents.map((d) => tuple('doc', `d${d}`, 'viewer', user(holder(d, 3)))),
    ],
    allowed: (i) => [at(i), holder(at(i), 3)],
    denied: byHolder,
  },
  {
    name: 'direct, with a context',
    model: modelOf({ viewer: {} }),
    tuples: direct(),
    allowed: byHolder,
    denied: byOther,
    contextOf: byAge,
  },
  {
    name: 'conditional',
    model: modelOf({ viewer: {} }),
    tuples: direct('viewer', { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' }),
    allowed: byHolder,
    denied: byOther,
    contextOf: byAge,
  },
  {
    name: 'conditional, the context at hand',
    model: modelOf({ viewer: {} }),
    tuples: direct('viewer', { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' }),
    allowed: byHolder,
    denied: byOther,
    contextOf: byAge,
    isParsed: true,
  },
];

const prepared = shapes.map((shape) => {
  const index = new TupleIndex();
  for (const one of shape.tuples) index.applyChange('insert', one);
  const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
  const evaluator = new Evaluator(
    index,
    parseModel(JSON.stringify(shape.model)),
    options,
    systemClock,
  );
  const [doc, viewer] = [index.nameId('doc'), index.nameId('viewer')];
  const idsOf = (question: Shape['allowed']): Uint32Array => {
    const ids = new Uint32Array(QUESTIONS * 2);
    for (let i = 0; i < QUESTIONS; i++) {
      const [d, u] = question(i);
      ids[2 * i] = index.entityId(doc, `d${d}`);
      ids[2 * i + 1] = index.entityId(EMPTY_NAME, `u${u}`);
    }
    return ids;
  };
  const nowMs = Date.now();
  const atHand = new Map<string, LazyContext>();
  for (const text of shape.isParsed === true ? AGES : []) {
    const value = parseContext(text);
    atHand.set(text, { value: () => value });
  }
  const ask = (ids: Uint32Array, i: number): boolean => {
    const [object, subject] = [ids[2 * i] as number, ids[2 * i + 1] as number];
    const text = shape.contextOf?.(i) ?? '';
    const context = text === '' ? null : (atHand.get(text) ?? { value: () => parseContext(text) });
    const code = evaluator.checkUser(object, viewer, subject, nowMs, READ_BUDGET, context);
    if (code !== CHECK_GENERAL) return code === CHECK_ALLOWED;
    general += 1;
    const task = evaluator.startCheckIds(object, viewer, subject, nowMs, READ_BUDGET, text);
    task.run(Infinity);
    return task.result();
  };
  let general = 0;
  const sides = ([true, false] as const).map((wanted) => {
    const question = wanted ? shape.allowed : shape.denied;
    const ids = idsOf(question);
    const pass = (): void => {
      let right = 0;
      for (let i = 0; i < QUESTIONS; i++) if (ask(ids, i) === wanted) right += 1;
      if (right !== QUESTIONS) throw new Error(`${shape.name}: ${QUESTIONS - right} wrong answers`);
    };
    const round = (): number => {
      // What the shapes before left in the processor's caches would else be paid for by the side that is asked first.
      pass();
      const start = process.cpuUsage();
      for (let k = 0; k < PASSES; k++) pass();
      const { user: userUs, system } = process.cpuUsage(start);
      return (PASSES * QUESTIONS) / ((userUs + system) / 1e6);
    };
    return { wanted, round, rates: [] as number[] };
  });
  return { shape, index, sides, generalShare: () => general };
});

for (let round = 0; round <= ROUNDS; round++) {
  for (const { sides } of prepared) {
    for (const side of sides) {
      const rate = side.round();
      if (round > 0) side.rates.push(rate);
    }
  }
}
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const [plain] = prepared;
for (const { shape, index, sides, generalShare } of prepared) {
  const fields = sides.map(({ wanted, rates }, which) => {
    const base = plain?.sides[which]?.rates ?? [];
    const ratio = median(rates.map((rate, i) => rate / (base[i] ?? Number.NaN)));
    return [
      wanted ? 'allow' : 'deny',
      {
        medianPerSecond: Math.round(median(rates)),
        best: Math.round(Math.max(...rates)),
        toDirect: Number(ratio.toFixed(3)),
      },
    ];
  });
  const general = generalShare() / (2 * QUESTIONS * (ROUNDS + 1));
  console.log(
    JSON.stringify({
      bench: 'engine-shapes',
      shape: shape.name,
      tuples: index.tupleCount,
      general,
      ...Object.fromEntries(fields),
    }),
  );
}
