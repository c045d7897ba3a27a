import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const READS = 100_000;
/** More users than a line copies, so that lists stand in both forms. */
const USERS = Array.from({ length: 9 }, (_, i) => `u${i}`);
const FOLDERS = ['f0', 'f1', 'f2', 'f3', 'f4', 'f5'];
const DOCS = ['d0', 'd1', 'd2'];
const GROUPS = ['g0', 'g1', 'g2'];

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      folder: {
        relations: {
          parent: {},
          editor: {
            union: [{ this: {} }, { tuple_to_userset: { tupleset: 'parent', computed: 'editor' } }],
          },
          viewer: {
            union: [
              { this: {} },
              { computed: 'editor' },
              { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
            ],
          },
        },
      },
      doc: {
        relations: {
          parent: {},
          viewer: {
            union: [{ this: {} }, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }],
          },
        },
      },
    },
  }),
);

const user = fc.constantFrom(...USERS).map((userId): Subject => ({ kind: 'user', userId }));
const setOf = (namespace: string, ids: readonly string[], relation: string) =>
  fc
    .constantFrom(...ids)
    .map((objectId): Subject => ({ kind: 'set', namespace, objectId, relation }));
const grantee = fc.oneof(
  { weight: 60, arbitrary: user },
  { weight: 30, arbitrary: setOf('group', GROUPS, 'member') },
  { weight: 1, arbitrary: setOf('folder', FOLDERS, 'viewer') },
  { weight: 1, arbitrary: fc.constant<Subject>({ kind: 'wildcard' }) },
);
const tuple = fc.oneof(
  { weight: 4, arbitrary: record('group', GROUPS, 'member', grantee) },
  { weight: 3, arbitrary: record('folder', FOLDERS, 'viewer', grantee) },
  { weight: 3, arbitrary: record('folder', FOLDERS, 'editor', grantee) },
  // Mostly trees, now and then a cycle.
  {
    weight: 6,
    arbitrary: record(
      'folder',
      FOLDERS.slice(0, 3),
      'parent',
      setOf('folder', FOLDERS.slice(3), ''),
    ),
  },
  { weight: 1, arbitrary: record('folder', FOLDERS, 'parent', setOf('folder', FOLDERS, '')) },
  { weight: 3, arbitrary: record('doc', DOCS, 'viewer', grantee) },
  { weight: 4, arbitrary: record('doc', DOCS, 'parent', setOf('folder', FOLDERS, '')) },
);

function record(
  namespace: string,
  ids: readonly string[],
  relation: string,
  subject: fc.Arbitrary<Subject>,
): fc.Arbitrary<RelationTuple> {
  const expires = fc.option(fc.constantFrom(1n, 1n << 60n), { freq: 100, nil: undefined });
  return fc.tuple(fc.constantFrom(...ids), subject, expires).map(([objectId, of, expiresAtUs]) => ({
    namespace,
    objectId,
    relation,
    subject: of,
    ...(expiresAtUs === undefined ? {} : { expiresAtUs }),
  }));
}

function identityOf({ namespace, objectId, relation, subject }: RelationTuple): string {
  return JSON.stringify([namespace, objectId, relation, subject]);
}

let hot = 0;
let general = 0;

/** Every question to the hot path and to the general one, which uses none of the caches. */
function compare(evaluator: Evaluator, index: TupleIndex, step: number): void {
  const relation = index.nameId('viewer');
  for (const [namespace, ids] of [
    ['doc', DOCS],
    ['folder', FOLDERS],
  ] as const) {
    for (const id of ids) {
      const entity = index.entityId(index.nameId(namespace), id);
      if (entity === 0) continue;
      for (const userId of USERS) {
        const userEntity = index.entityId(EMPTY_NAME, userId);
        const code = evaluator.checkUser(entity, relation, userEntity, 0, READS);
        if (code === CHECK_GENERAL) {
          general++;
          continue;
        }
        hot++;
        const expected = finish(evaluator.startCheckIds(entity, relation, userEntity, 0, READS));
        expect([step, id, userId, code === CHECK_ALLOWED]).toEqual([step, id, userId, expected]);
      }
    }
  }
}

test(`warm caches never differ from the index, whatever changes (SEED=${seed})`, () => {
  // What is deleted is stored: a deletion of something else would change nothing.
  const change = fc.tuple(fc.option(fc.nat(), { nil: undefined }), tuple);
  const changes = fc.array(change, { minLength: 20, maxLength: 120, size: 'max' });
  fc.assert(
    fc.property(changes, fc.integer({ min: 1, max: 5 }), (steps, every) => {
      const index = new TupleIndex();
      const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
      const evaluator = new Evaluator(index, MODEL, options, systemClock);
      const stored = new Map<string, RelationTuple>();
      steps.forEach(([pick, one], step) => {
        const known = [...stored.values()];
        const removed = pick === undefined || step < 15 ? undefined : known[pick % known.length];
        index.applyChange(removed === undefined ? 'insert' : 'delete', removed ?? one);
        if (removed === undefined) stored.set(identityOf(one), one);
        else stored.delete(identityOf(removed));
        if (step % every === 0) compare(evaluator, index, step);
      });
    }),
    { numRuns: Math.ceil(30 * FUZZ_RUNS), seed },
  );
  expect(hot * 10).toBeGreaterThan(general); // the caches were used
}, 120_000);
