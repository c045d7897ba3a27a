import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { missingPart } from '../../src/model/namespace/unknown-relation.ts';
import type { WorkerStats } from '../../src/protocol/messages.ts';
import { byLength } from '../support/test-length.ts';
import {
  askBatch,
  askCheck,
  askRaw,
  reasonOf,
  scopeOf,
  startFixture,
  type Fixture,
  viewer,
} from './pool-fixture.ts';

/* Every way of a decision counts and flags what a typed model does not have, and nothing else. */
const SHARD = { projectId: 'p', tenantId: 't' };
const NOTHING = { contextual: [], context: '' };
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const numRuns = byLength(4, 12) * Number(process.env['FUZZ_RUNS'] ?? 1);

const NAMESPACES = ['doc', 'docs', 'open', 'seat', 'group', 'team', 'user'];
const RELATIONS = ['viewer', 'viewr', 'banned', 'member', 'holder', 'owner'];
const ASKED = NAMESPACES.flatMap((namespace) =>
  RELATIONS.map((relation) => ({ namespace, relation })),
);
type Asked = (typeof ASKED)[number];

/** What the document says, read as JSON: not by the code under test. */
function lacks(
  isTyped: boolean,
  { namespace, relation }: Asked,
): 'namespace' | 'relation' | undefined {
  if (!isTyped || namespace === 'open') return undefined;
  const has: Record<string, readonly string[]> = {
    doc: ['viewer', 'banned'],
    seat: ['holder'],
    group: ['member'],
  };
  const relations = has[namespace];
  if (relations === undefined) return 'namespace';
  return relations.includes(relation) ? undefined : 'relation';
}

function modelOf(isTyped: boolean): string {
  const subjects = isTyped ? { subjects: ['user'] } : {};
  return JSON.stringify({
    namespaces: {
      doc: { relations: { viewer: { this: {}, ...subjects }, banned: { this: {}, ...subjects } } },
      open: { open: true, relations: { viewer: { this: {}, ...subjects } } },
    },
  });
}

test('a model lacks exactly what its document does not have', () => {
  for (const isTyped of [true, false]) {
    const model = parseModel(modelOf(isTyped));
    for (const asked of ASKED) {
      expect(missingPart(model, asked.namespace, asked.relation), JSON.stringify(asked)).toBe(
        lacks(isTyped, asked),
      );
    }
  }
});

/** Ways of one decision; each says whether the flag was set, where the way has one. */
const WAYS: Readonly<
  Record<string, (fixture: Fixture, asked: Asked) => Promise<boolean | undefined>>
> = {
  rawJson: async ({ pool }, { namespace, relation }) => {
    const body = { namespace, object_id: 'd', relation, subject_user_id: 'u' };
    await askRaw(pool, scopeOf(SHARD, 1), 'check', JSON.stringify(body));
    return undefined;
  },
  rawProto: async ({ pool }, { namespace, relation }) => {
    const message = create(CheckRequestSchema, {
      namespace,
      objectId: 'd',
      relation,
      subjectUserId: 'u',
    });
    await askRaw(pool, scopeOf(SHARD, 1), 'check', toBinary(CheckRequestSchema, message));
    return undefined;
  },
  rawBatch: async ({ pool }, { namespace, relation }) => {
    const items = [{ namespace, objectId: 'd', relation, subjectUserId: 'u' }];
    const message = create(BatchCheckRequestSchema, { items });
    await askRaw(pool, scopeOf(SHARD, 1), 'batchCheck', toBinary(BatchCheckRequestSchema, message));
    return undefined;
  },
  parsedUser: async ({ pool }, asked) => {
    const subject = { kind: 'user', userId: 'u' } as const;
    const query = { ...asked, objectId: 'd', subject, contextJson: '' };
    await askCheck(pool, scopeOf(SHARD, 1), query);
    return undefined;
  },
  parsedSet: async ({ pool }, asked) => {
    const subject = { kind: 'set', namespace: 'group', objectId: 'g', relation: 'member' } as const;
    const query = { ...asked, objectId: 'd', subject, contextJson: '' };
    await askCheck(pool, scopeOf(SHARD, 1), query);
    return undefined;
  },
  parsedBatch: async ({ pool }, asked) => {
    await askBatch(pool, scopeOf(SHARD, 1), [{ ...asked, objectId: 'd', userId: 'u' }]);
    return undefined;
  },
  queryCheck: async ({ pool }, asked) => {
    const { result } = await pool.query(scopeOf(SHARD, 1), 'check', queryOf(asked));
    return result.unknownRelation;
  },
  queryBatch: async ({ pool }, asked) => {
    const items = [queryOf(asked).query];
    const args = { ...NOTHING, items };
    return (await pool.query(scopeOf(SHARD, 1), 'batchCheck', args)).result[0]?.unknownRelation;
  },
  filterObjects: async ({ pool }, asked) => {
    const args = { ...NOTHING, ...asked, subject: ANN, objectIds: ['d'] };
    return (await pool.query(scopeOf(SHARD, 1), 'filterObjects', args)).result.unknownRelation;
  },
};

/** Those that are no decisions: flagged, and not counted. */
const UNCOUNTED: typeof WAYS = {
  explain: async ({ pool }, asked) => {
    const args = { ...queryOf(asked), remediesMax: 1 };
    return (await pool.query(scopeOf(SHARD, 1), 'explain', args)).result.unknownRelation;
  },
  whatIf: async ({ pool }, asked) => {
    const args = { ...NOTHING, updates: [], queries: [queryOf(asked).query] };
    return (await pool.query(scopeOf(SHARD, 1), 'whatIf', args)).result[0]?.unknownRelation;
  },
};

const ANN = { kind: 'user', userId: 'ann' } as const;

function queryOf(asked: Asked) {
  return { ...NOTHING, query: { ...asked, objectId: 'd', subject: ANN } };
}

function totals(all: readonly WorkerStats[]) {
  const sum = (of: (stats: WorkerStats) => number): number =>
    all.reduce((total, stats) => total + of(stats), 0);
  return {
    namespace: sum(({ unknown }) => unknown.counts.namespace),
    relation: sum(({ unknown }) => unknown.counts.relation),
    decisions: sum(({ decisions }) => decisions.reduce((total, { count }) => total + count, 0)),
  };
}

test('all ways count and flag alike, for any questions of any model', async () => {
  const way = fc.constantFrom(...Object.keys(WAYS), ...Object.keys(UNCOUNTED));
  const questions = fc.array(fc.tuple(way, fc.constantFrom(...ASKED)), {
    minLength: 1,
    maxLength: 40,
    size: 'max',
  });
  await fc.assert(
    fc.asyncProperty(fc.boolean(), questions, async (isTyped, asked) => {
      const all: WorkerStats[] = [];
      await using fixture = await startFixture({
        workerCount: 1,
        modelJson: modelOf(isTyped),
        onStats: (stats) => all.push(stats),
      });
      // Names that tuples mention have ids, whether the model has them or not.
      fixture.source.commit(SHARD, [viewer('insert', 'd', 'u')]);
      const wanted = { namespace: 0, relation: 0, decisions: 0 };
      for (const [name, one] of asked) {
        const missing = lacks(isTyped, one);
        const flag = await (WAYS[name] ?? UNCOUNTED[name])?.(fixture, one);
        if (flag !== undefined)
          expect(flag, `${name} ${JSON.stringify(one)}`).toBe(missing !== undefined);
        if (WAYS[name] === undefined) continue;
        wanted.decisions += 1;
        if (missing !== undefined) wanted[missing] += 1;
      }
      await expect.poll(() => totals(all), { timeout: 20_000 }).toEqual(wanted);
      for (const { namespace, relation, missing, projectId } of all.flatMap(
        (one) => one.unknown.names,
      )) {
        expect(projectId).toBe('p');
        expect(missing).toBe(lacks(isTyped, { namespace, relation }));
      }
    }),
    { numRuns, seed, endOnFailure: true },
  );
}, 120_000);

test('names without ids in one batch are told apart', async () => {
  const all: WorkerStats[] = [];
  await using fixture = await startFixture({
    workerCount: 1,
    modelJson: modelOf(true),
    onStats: (stats) => all.push(stats),
  });
  const names = ['seat#holder', 'foo#bar', 'baz#bar', 'seat#holder', 'doc#nothing', 'foo#bar'];
  const items = names.map((name) => {
    const [namespace = '', relation = ''] = name.split('#');
    return { namespace, objectId: 'd', relation, subjectUserId: 'u' };
  });
  const message = create(BatchCheckRequestSchema, { items });
  const body = toBinary(BatchCheckRequestSchema, message);
  await askRaw(fixture.pool, scopeOf(SHARD, 0), 'batchCheck', body);
  await expect
    .poll(() => totals(all), { timeout: 20_000 })
    .toEqual({ namespace: 3, relation: 1, decisions: 6 });
  const told = all.flatMap(({ unknown }) => unknown.names);
  expect(told.map(({ namespace, relation }) => `${namespace}#${relation}`)).toEqual([
    'foo#bar',
    'baz#bar',
    'doc#nothing',
  ]);
});

test('a replica on the thread of the pool counts as workers do', async () => {
  const all: WorkerStats[] = [];
  const near = { indexBytesMax: 64 * 1024 * 1024, checksPerSecondMin: 1 };
  await using fixture = await startFixture({
    workerCount: 2,
    modelJson: modelOf(true),
    onStats: (stats) => all.push(stats),
    replication: {
      workersMax: 1,
      indexBytesMax: 64 * 1024 * 1024,
      sampleMs: 5,
      localReplicas: near,
    },
  });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'd', 'u')]);
  // `member` is a relation of the model, and not of doc.
  const body = { namespace: 'doc', object_id: 'd', relation: 'member', subject_user_id: 'u' };
  let asked = 0;
  await expect
    .poll(
      async () => {
        const before = pool.localReplicas.answered;
        await askRaw(pool, scopeOf(SHARD, 1), 'check', JSON.stringify(body));
        asked += 1;
        return pool.localReplicas.answered > before;
      },
      { timeout: 60_000, interval: 1 },
    )
    .toBe(true);
  await expect
    .poll(() => totals(all), { timeout: 20_000 })
    .toEqual({ namespace: 0, relation: asked, decisions: asked });
}, 120_000);

test('where the project refuses such questions, each says what was likely meant', async () => {
  await using fixture = await startFixture({ workerCount: 1, modelJson: modelOf(true) });
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'd', 'u')]);
  const scope = { ...scopeOf(SHARD, 1), refusesUnknown: true };
  const slip = { namespace: 'doc', relation: 'viewr' };
  const { query: question } = queryOf(slip);
  const page = { after: '', idsMax: 10 };
  const users = { subjectNamespace: '', subjectRelation: '' };
  const of = { ...NOTHING, ...slip, subject: ANN };
  const answers = [
    pool.query(scope, 'check', { ...NOTHING, query: question }),
    pool.query(scope, 'explain', { ...NOTHING, query: question, remediesMax: 1 }),
    pool.query(scope, 'filterObjects', { ...of, objectIds: ['d'] }),
    pool.query(scope, 'listObjects', { ...of, page }),
    pool.query(scope, 'streamObjects', of),
    pool.query(scope, 'listSubjects', { ...NOTHING, ...slip, ...users, objectId: 'd', page }),
    pool.query(scope, 'listRelations', {
      ...NOTHING,
      namespace: 'doc',
      objectId: 'd',
      subject: ANN,
      relations: ['viewer', 'viewr'],
    }),
  ];
  for (const answer of await Promise.allSettled(answers)) {
    const error: unknown = answer.status === 'rejected' ? answer.reason : 'answered';
    expect(reasonOf(error)).toBe('RELATION_UNKNOWN');
    expect(String(error)).toMatch(
      /relation "viewr" in the namespace "doc"; did you mean "viewer"\?/,
    );
  }
  const other = queryOf({ namespace: 'docs', relation: 'viewer' }).query;
  const known = queryOf({ namespace: 'doc', relation: 'viewer' }).query;
  const items = [question, other, known];
  const batch = await pool.query(scope, 'batchCheck', { ...NOTHING, items });
  expect(batch.result.map(({ error, unknownRelation }) => [error, unknownRelation])).toEqual([
    [
      'question.relation: the model has no relation "viewr" in the namespace "doc"; did you mean "viewer"?',
      true,
    ],
    ['question.namespace: the model has no namespace "docs"; did you mean "doc"?', true],
    ['', false],
  ]);
  const whatIf = await pool.query(scope, 'whatIf', { ...NOTHING, updates: [], queries: items });
  expect(whatIf.result.map(({ error }) => error !== '')).toEqual([true, true, false]);
});
