import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TupleIndex } from '../../src/cache/tuple-index.ts';
import type { TupleChange } from '../../src/model/relation-tuple.ts';
import { FLIPPED_PARTS, flipBit } from '../support/flip-bit.ts';
import { byLength } from '../support/test-length.ts';
import { type Fixture, checkViewer, scopeOf, startFixture, viewer } from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: 't' };

/** Of each kind: enough for long lists. */
const EACH = byLength(120, 400);

/** Tuples that need every part of an index. */
function everyKind(): TupleChange[] {
  const changes: TupleChange[] = [];
  for (let i = 0; i < EACH; i++) {
    changes.push(viewer('insert', 'popular', `u${i}`), viewer('insert', `d${i}`, 'u1'));
    const wide = viewer('insert', 'wide', `u${i}`);
    changes.push({ op: 'insert', tuple: { ...wide.tuple, relation: `r${i % 20}` } });
    const subject = {
      kind: 'set',
      namespace: 'group',
      objectId: 'all',
      relation: 'member',
    } as const;
    const carried =
      i % 2 === 0
        ? { expiresAtUs: 4_000_000_000_000_000n + BigInt(i) }
        : { conditionName: 'before', conditionParams: `{"n":${i}}` };
    const tuple = { ...viewer('insert', `d${i}`, 'x').tuple, subject, ...carried };
    changes.push({ op: 'insert', tuple });
  }
  return changes;
}

async function loaded(options: Parameters<typeof startFixture>[0] = {}): Promise<Fixture> {
  const fixture = await startFixture({ workerCount: 1, ...options });
  fixture.source.commit(SHARD, everyKind());
  expect(await checkViewer(fixture.pool, scopeOf(SHARD, 1), 'popular', 'u7')).toBe(true);
  return fixture;
}

function indexOf(fixture: Fixture): TupleIndex {
  // The hook of the tests: the thread that they run in is the worker's.
  return fixture.transports[0]?.host?.actor(SHARD)?.index.reader as TupleIndex;
}

function reportsOf(fixture: Fixture, event: string): string[] {
  return fixture.events.flatMap((each) =>
    each.kind === 'workerReport' && each.report.event === event ? [each.report.error] : [],
  );
}

test('a healthy index is compared with every row, and nothing differs', async () => {
  await using fixture = await loaded();
  const totals = await fixture.pool.checkIndexes();
  expect(totals).toEqual({ shards: 1, rows: 4 * EACH, differences: 0, unfinished: 0 });
  expect(fixture.source.loads).toBe(1);
});

test.each(FLIPPED_PARTS)('a flipped bit in %s is found, told and mended', async (part) => {
  await using fixture = await loaded();
  flipBit(indexOf(fixture), part);
  const { differences, shards } = await fixture.pool.checkIndexes();
  expect([differences, shards]).toEqual([1, 1]);
  const [report] = reportsOf(fixture, 'index_differs');
  expect(report).toMatch(
    /^\w+: .* \(\d+ of \d+ rows compared differ, \d+ tuples in the index, seq 1\)$/,
  );
  await expect.poll(() => fixture.transports[0]?.host?.actor(SHARD)?.isLoaded).toBe(true);
  expect(fixture.source.loads).toBe(2);
  expect((await fixture.pool.checkIndexes()).differences).toBe(0);
  expect(await checkViewer(fixture.pool, scopeOf(SHARD, 1), 'popular', 'u7')).toBe(true);
});

test('what is stored, and what is only in the index, are both found', async () => {
  await using fixture = await loaded();
  const { pool, source } = fixture;
  const actor = fixture.transports[0]?.host?.actor(SHARD);
  // The store changes without a word: another history that nobody told of, in one direction and in the other.
  for (const [op, object] of [
    ['insert', 'only-stored'],
    ['delete', 'd5'],
  ] as const) {
    const { head } = { head: source.head(SHARD) };
    source.commit(SHARD, [viewer(op, object, 'u1')]);
    source.diverge(SHARD, { revision: head.revision, forkId: head.forkId });
    expect((await pool.checkIndexes()).differences).toBe(1);
    await expect.poll(() => actor?.isLoaded).toBe(true);
  }
  const reports = reportsOf(fixture, 'index_differs').map((text) => text.split(' (')[0]);
  expect(reports[0]).toMatch(
    /^tuples: a stored tuple is not in the index: doc:[0-9a-f]{8}#viewer@:[0-9a-f]{8}#$/,
  );
  expect(reports[1]).toBe(
    `tuples: the index holds ${4 * EACH + 1} tuples where ${4 * EACH} are stored`,
  );
  expect((await pool.checkIndexes()).differences).toBe(0);
});

test('in the background each index is compared once in an interval', async () => {
  await using fixture = await loaded({ fsckRowsPerSecond: 1_000_000, fsckIntervalMs: 50 });
  flipBit(indexOf(fixture), 'the users of an object');
  await expect.poll(() => reportsOf(fixture, 'index_differs').length, { timeout: 10_000 }).toBe(1);
  await expect.poll(() => fixture.transports[0]?.host?.actor(SHARD)?.isLoaded).toBe(true);
  expect(await checkViewer(fixture.pool, scopeOf(SHARD, 1), 'popular', 'u7')).toBe(true);
});

test('a store that is away leaves the index alone, and the comparison is said not to have ended', async () => {
  await using fixture = await loaded();
  fixture.source.fault = (what) =>
    what === 'page' ? Promise.reject(new Error('away')) : Promise.resolve();
  const totals = await fixture.pool.checkIndexes();
  expect([totals.differences, totals.unfinished, totals.shards]).toEqual([0, 3, 0]);
  expect(reportsOf(fixture, 'index_not_compared').length).toBe(3);
  expect(fixture.source.loads).toBe(1);
});

test('an index that is behind a page catches up before it is compared', async () => {
  await using fixture = await loaded();
  for (let i = 0; i < 5; i++) fixture.source.commit(SHARD, [viewer('insert', `late${i}`, 'u')]);
  const { differences, shards } = await fixture.pool.checkIndexes();
  expect([differences, shards]).toEqual([0, 1]);
  expect(fixture.transports[0]?.host?.actor(SHARD)?.watermark).toBe(6);
});

const FUZZ = Number(process.env['FUZZ_RUNS'] ?? '1');

test('while writes go on a healthy index never differs', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          op: fc.constantFrom('insert' as const, 'delete' as const),
          object: fc.nat({ max: 30 }),
          user: fc.nat({ max: 30 }),
          expiresAtUs: fc.option(fc.bigInt({ min: 0n, max: 2n ** 50n }), { nil: undefined }),
          /** How the worker hears of it. */
          way: fc.constantFrom('told', 'told', 'lost', 'late'),
        }),
        { minLength: 200, maxLength: 600, size: 'max' },
      ),
      async (writes) => {
        await using fixture = await loaded();
        const { pool, source } = fixture;
        let isOver = false;
        const writing = (async () => {
          for (let i = 0; !isOver; i++) {
            const { op, object, user, expiresAtUs, way } = writes[
              i % writes.length
            ] as (typeof writes)[0];
            const { tuple } = viewer(op, `d${object}`, `u${user}`);
            const change = { op, tuple: { ...tuple, ...(op === 'insert' ? { expiresAtUs } : {}) } };
            const committed = source.commit(SHARD, [change, viewer('insert', 'busy', `${i % 7}`)]);
            if (way === 'told') pool.applyCommitted([committed]);
            if (way === 'late') setTimeout(() => pool.applyCommitted([committed]), 3);
            if (i % 3 === 0) await sleep(0);
          }
        })();
        try {
          for (let run = 0; run < 3; run++) {
            const before = source.head(SHARD).revision;
            const totals = await pool.checkIndexes();
            expect(source.head(SHARD).revision - before).toBeGreaterThan(5);
            expect(reportsOf(fixture, 'index_differs')).toEqual([]);
            expect([totals.shards, totals.unfinished]).toEqual([1, 0]);
          }
        } finally {
          isOver = true;
          await writing;
        }
        expect(source.loads).toBe(1);
      },
    ),
    { numRuns: byLength(1, 8) * FUZZ },
  );
}, 120_000);
