import { expect, test } from 'vitest';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import type { ItemDecision, Query } from '../../src/protocol/queries.ts';
import { checkViewer, reasonOf, scopeOf, startFixture, viewer } from './pool-fixture.ts';

const shard = { projectId: 'p', tenantId: 't' };
const question = (objectId: string, userId: string): Query => ({
  namespace: 'doc',
  objectId,
  relation: 'viewer',
  subject: { kind: 'user', userId },
});
const tuple = (objectId: string, userId: string): RelationTuple =>
  viewer('insert', objectId, userId).tuple;
const failureOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(() => 'answered', reasonOf);
const NOTHING = { contextual: [], context: '' };

test('answers with the revision that it was computed at, at or above the one asked for', async () => {
  await using fixture = await startFixture();
  const { pool, source } = fixture;
  for (let seq = 1; seq <= 5; seq++) {
    source.commit(shard, [viewer('insert', `d${seq}`, 'ann')]);
    const args = { ...NOTHING, query: question(`d${seq}`, 'ann') };
    const { result, revision } = await pool.query(scopeOf(shard, seq), 'check', args);
    expect(result).toEqual({ allowed: true, undecided: false, unknownRelation: false });
    expect(revision.revision).toBe(seq);
    expect(revision.epoch).toBe(scopeOf(shard, seq).epoch);
  }
});

test('a large batch is evaluated in slices over one revision, and stops nobody else', async () => {
  await using fixture = await startFixture({ workerCount: 1, sliceMs: 1, queueBytesMax: 1e8 });
  const { pool, source } = fixture;
  const ids = Array.from({ length: 10_000 }, (_, i) => `d${i}`);
  source.commit(
    shard,
    ids.map((id) => viewer('insert', id, 'ann')),
  );
  await checkViewer(pool, scopeOf(shard, 1), 'd0', 'ann');
  const items = ids.map((id) => question(id, 'ann'));
  const contextual = Array.from({ length: 100 }, (_, i) => tuple(`d${i}`, 'guest'));
  const scope = scopeOf(shard, 1, { readBudget: 10_000_000 });
  let isDone = false;
  const batch = pool
    .query(scope, 'batchCheck', { contextual, context: '', items })
    .then((answer) => {
      isDone = true;
      return answer;
    });
  let meanwhile = 0;
  const other = { projectId: 'p', tenantId: 'other' };
  while (!isDone) {
    expect(await checkViewer(pool, scopeOf(other, 0), 'a', 'u')).toBe(false);
    if (meanwhile++ > 0) continue;
    // A change of the shard waits for the end of the batch, and is not part of it.
    pool.applyCommitted([
      source.commit(
        shard,
        ids.map((id) => viewer('delete', id, 'ann')),
      ),
    ]);
  }
  const { result, revision } = await batch;
  expect(meanwhile).toBeGreaterThan(1);
  expect(revision.revision).toBe(1);
  expect(result.every((one: ItemDecision) => one.allowed && one.error === '')).toBe(true);
  const after = await pool.query(scopeOf(shard, 2), 'batchCheck', {
    contextual,
    context: '',
    items: [question('d5', 'ann'), question('d5', 'guest')],
  });
  expect(after.result.map((one) => one.allowed)).toEqual([false, true]);
});

test('questions of other contextual tuples side by side do not see each other', async () => {
  await using fixture = await startFixture({ workerCount: 1, sliceMs: 0.1, queueBytesMax: 1e8 });
  const { pool, source } = fixture;
  source.commit(shard, [viewer('insert', 'd', 'ann')]);
  const users = Array.from({ length: 40 }, (_, i) => `guest${i}`);
  const answers = await Promise.all(
    users.map(async (user) => {
      const items = users.map((one) => question('d', one));
      const args = { contextual: [tuple('d', user)], context: '', items };
      const { result } = await pool.query(scopeOf(shard, 1), 'batchCheck', args);
      return result.map((one) => one.allowed);
    }),
  );
  for (const [i, row] of answers.entries()) {
    expect(row).toEqual(users.map((_, j) => i === j));
  }
  expect(await checkViewer(pool, scopeOf(shard, 1), 'd', 'guest7')).toBe(false);
});

test('counts against the queue by its size, and is told apart where it ended a worker', async () => {
  await using fixture = await startFixture({ workerCount: 1, queueBytesMax: 100_000 });
  const { pool, source, transports } = fixture;
  const heavy: RelationTuple = {
    ...tuple('d', 'u'),
    expiresAtUs: 5_000_000n,
    conditionName: 'not_after',
    conditionParams: JSON.stringify({ not_after: 'x'.repeat(60_000) }),
  };
  const args = { contextual: [heavy], context: '', query: question('d', 'u') };
  const both = { ...args, context: JSON.stringify({ now: 'y'.repeat(60_000) }) };
  const refused = await failureOf(pool.query(scopeOf(shard, 0), 'check', both));
  expect(refused).toBe('QUEUE_FULL');
  expect((await pool.query(scopeOf(shard, 0), 'check', args)).result.allowed).toBe(false);
  // A crash while it is evaluated: the same question, whose expiry JSON has no form for, is refused from then on.
  source.fault = () => new Promise(() => undefined);
  const away = scopeOf({ projectId: 'p', tenantId: 'away' }, 0);
  const dying = failureOf(pool.query(away, 'check', args));
  await expect.poll(() => transports[0]?.host?.actor(away)?.state).toBe('loading');
  // The refused one had the first number, the answered one the second.
  transports[0]?.crash(3);
  expect(await dying).toBe('WORKER_LOST');
  source.fault = () => Promise.resolve();
  expect(await failureOf(pool.query(away, 'check', args))).toBe('REQUEST_REFUSED');
  const other = { ...args, query: question('other', 'u') };
  expect((await pool.query(away, 'check', other)).result.allowed).toBe(false);
});

test('a cancelled question fails at once', async () => {
  await using fixture = await startFixture();
  const { pool } = fixture;
  const abort = new AbortController();
  const args = { ...NOTHING, query: question('d', 'u') };
  const asked = pool.query(scopeOf(shard, 0), 'check', args, abort.signal);
  abort.abort();
  expect(await failureOf(asked)).toBe('CANCELLED');
});
