import { expect, test } from 'vitest';
import type { ShardKey, Subject, TupleChange } from '../../src/model/relation-tuple.ts';
import type { QueryArgs } from '../../src/protocol/queries.ts';
import type { WorkerPool } from '../../src/workers/slot/worker-pool.ts';
import { keyOf } from '../support/tuple-text.ts';
import { type Fixture, scopeOf, startFixture } from './pool-fixture.ts';

/* Exact questions about sets, answered on the thread of the pool from a replica there. */
const SHARD: ShardKey = { projectId: 'p', tenantId: 'hot' };
const MIB = 1024 * 1024;
const NEAR = { indexBytesMax: 64 * MIB, checksPerSecondMin: 1 };
const REPLICATION = { workersMax: 1, indexBytesMax: 64 * MIB, sampleMs: 5, localReplicas: NEAR };
const WAIT_MS = 25_000;
const ENG = 'group:eng#member';

const insert = (text: string): TupleChange => ({ op: 'insert', tuple: keyOf(text) });

type Asked = {
  readonly allowed: boolean;
  readonly undecided: boolean;
  readonly revision: number;
  readonly isInstant: boolean;
};

async function ask(
  pool: WorkerPool,
  text: string,
  revision: number,
  more: Partial<QueryArgs['check']> = {},
): Promise<Asked> {
  const before = pool.localReplicas.answered;
  const args = { contextual: [], context: '', isExact: true, query: keyOf(text), ...more };
  const answer = await pool.ask(scopeOf(SHARD, revision), 'check', args);
  const { allowed, undecided } = answer.result;
  const isInstant = pool.localReplicas.answered > before;
  return { allowed, undecided, revision: answer.revision.revision, isInstant };
}

/** Asks in every sample, as a busy shard is asked, until it is answered in the call. */
async function untilInstant({ pool }: Fixture, text: string): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (!(await ask(pool, text, 1)).isInstant) {
    if (performance.now() > endMs) expect.fail('the shard was never taken for a busy one');
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  }
}

async function start(tuples: readonly string[]): Promise<Fixture> {
  const fixture = await startFixture({ workerCount: 2, replication: REPLICATION });
  fixture.source.commit(SHARD, tuples.map(insert));
  return fixture;
}

test('exact usersets and objects are decided in the call, at the revision that is told', async () => {
  await using fixture = await start([
    `doc:d#viewer@${ENG}`,
    'doc:d#viewer@group:all#member',
    'group:all#member@group:deep#member',
    'doc:d#viewer@folder:f',
    `${ENG}@user:u`,
    'doc:x#viewer@user:u',
  ]);
  const { pool, source, transports } = fixture;
  const named = `doc:d#viewer@${ENG}`;
  await untilInstant(fixture, named);
  const asked = transports.map(({ requests }) => requests);
  const wanted: readonly (readonly [string, boolean])[] = [
    [named, true],
    ['doc:d#viewer@group:deep#member', true],
    ['doc:d#viewer@group:deep', false],
    ['doc:d#viewer@folder:f', true],
    // Only a member of it holds that.
    [`doc:x#viewer@${ENG}`, false],
  ];
  for (const [text, allowed] of wanted) {
    const answer = { allowed, undecided: false, revision: 1, isInstant: true };
    expect([text, await ask(pool, text, 1)]).toEqual([text, answer]);
  }
  expect(transports.map(({ requests }) => requests)).toEqual(asked);
  const removed: TupleChange = { op: 'delete', tuple: keyOf(named) };
  pool.applyCommitted([source.commit(SHARD, [removed])]);
  expect(await ask(pool, named, 2)).toMatchObject({ allowed: false, revision: 2 });
});

test('whatever else a question carries is for a worker', async () => {
  const named = `doc:d#viewer@${ENG}`;
  await using fixture = await start([named, `${ENG}@user:u`, 'doc:x#viewer@user:u']);
  const { pool } = fixture;
  await untilInstant(fixture, named);
  const user: Subject = { kind: 'user', userId: 'u' };
  const others: readonly Partial<QueryArgs['check']>[] = [
    { context: '{"age":3}' },
    { contextual: [keyOf(`doc:y#viewer@${ENG}`)] },
    { refusesUnknown: false },
    { isExact: false },
    { query: { ...keyOf(named), subject: user } },
  ];
  for (const more of others) {
    expect([more, (await ask(pool, named, 1, more)).isInstant]).toEqual([more, false]);
  }
  // The mode is the question's: members count for one, and not for the other.
  const through = `doc:x#viewer@${ENG}`;
  expect((await ask(pool, through, 1, { isExact: false })).allowed).toBe(true);
  expect(await ask(pool, through, 1)).toMatchObject({ allowed: false, isInstant: true });
});

test('what cannot be decided at once is left to a worker', async () => {
  const conditional: TupleChange = {
    op: 'insert',
    tuple: {
      ...keyOf(`doc:c#viewer@${ENG}`),
      conditionName: 'age_at_least',
      conditionParams: '{"min_age":18}',
    },
  };
  await using fixture = await start([`doc:d#viewer@${ENG}`]);
  const { pool, source } = fixture;
  await untilInstant(fixture, `doc:d#viewer@${ENG}`);
  pool.applyCommitted([source.commit(SHARD, [conditional])]);
  const answer = await ask(pool, `doc:c#viewer@${ENG}`, 2);
  expect(answer).toEqual({ allowed: false, undecided: true, revision: 2, isInstant: false });
});
