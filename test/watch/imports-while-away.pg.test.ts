import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength, inShort } from '../support/test-length.ts';
import {
  authzOver,
  exported,
  linesOf,
  plainTuples,
  postLines,
  tuplesOver,
} from '../tuples/support.ts';

/*
 * Whoever follows all tenants and was away while one of them was filled by an import is told to read that one anew, and of
 * every write of the others: what it then has is what is stored.
 */

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

let database: TestDatabase;
let instances: readonly [Instance, Instance];

beforeAll(async () => {
  database = await createTestDatabase();
  const start = (): Promise<Instance> =>
    startInstance(database, { GATEWAY_WATCH_STREAMS: '100', GATEWAY_PG_POOL_SIZE: '8' });
  instances = [await start(), await start()];
}, 120_000);
afterAll(async () => {
  for (const instance of instances) {
    await instance.stop();
    expect(instance.failures).toEqual([]);
  }
  await database.drop();
});

let projects = 0;
async function newProject(): Promise<string> {
  const id = `away${++projects}`;
  const { baseUrl, token, adminSecret } = instances[0];
  const response = await fetch(`${baseUrl}/workspace.v1.AdminService/CreateProject`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'x-admin-secret': adminSecret,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ id, name: id }),
  });
  expect(response.status).toBe(200);
  return id;
}

const write = (at: Instance, projectId: string, tenantId: string, objectId: string) =>
  authzOver(at).writeRelationTuples({
    projectId,
    tenantId,
    updates: [
      {
        op: TupleUpdate_Op.INSERT,
        tuple: {
          namespace: 'doc',
          objectId,
          relation: 'viewer',
          subject: { kind: { case: 'userId', value: 'u' } },
        },
      },
    ],
  });

async function importTuples(at: Instance, projectId: string, tenantId: string, from: number) {
  const query = `?project_id=${projectId}&tenant_id=${tenantId}`;
  const { status, body } = await postLines(at, query, linesOf(plainTuples(20, from)));
  expect([status, body]).toEqual([200, body]);
}

const clear = (at: Instance, projectId: string, tenantId: string) =>
  tuplesOver(at).deleteTuples({
    projectId,
    tenantId,
    filter: { namespace: 'doc' },
    wholeNamespace: true,
  });

async function stored(projectId: string, tenantId: string, atLeast = ''): Promise<Set<string>> {
  const query = `?project_id=${projectId}&tenant_id=${tenantId}&at_least_consistency_token=${atLeast}`;
  const tuples = await exported(instances[0], query);
  return new Set(tuples.map((tuple) => `${tuple.object_id}@${JSON.stringify(tuple.subject)}`));
}

/** `idleMs`: goes away where nothing came for so long. */
type Reading = {
  readonly count: number;
  readonly until?: () => boolean;
  readonly idleMs?: number;
};

type Following = {
  readonly count: number;
  readonly until: () => boolean;
  readonly idle: NodeJS.Timeout | undefined;
};

/** Follows as a program does: keeps the cursor of what it has taken in, and reads anew what it is told to. */
class Follower {
  readonly #projectId: string;
  readonly #tuples = new Map<string, Set<string>>();
  readonly kinds: string[] = [];
  #cursor = '';

  constructor(projectId: string) {
    this.#projectId = projectId;
  }

  tuplesOf(tenantId: string): Set<string> {
    const known = this.#tuples.get(tenantId) ?? new Set<string>();
    this.#tuples.set(tenantId, known);
    return known;
  }

  /** Takes in `count` messages and the ones after them until `until`, then goes away. */
  async follow(at: Instance, { count, until = () => true, idleMs }: Reading): Promise<void> {
    const stop = new AbortController();
    const idle = idleMs === undefined ? undefined : setTimeout(() => stop.abort(), idleMs);
    try {
      await this.#follow(at, stop, { count, until, idle });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      clearTimeout(idle);
      stop.abort();
    }
  }

  async #follow(
    at: Instance,
    stop: AbortController,
    { count, until, idle }: Following,
  ): Promise<void> {
    const { tupleWatch } = at.services;
    const events = tupleWatch.watch(
      {
        projectId: this.#projectId,
        tenantId: '',
        allTenants: true,
        startAfter: this.#cursor,
        heartbeatSeconds: 1,
      },
      stop.signal,
    );
    let taken = 0;
    for await (const event of events) {
      this.kinds.push(event.kind === 'resync' ? `resync ${event.tenantId}` : event.kind);
      if (event.kind === 'changes') {
        const known = this.tuplesOf(event.tenantId);
        for (const { op, tuple } of event.updates) {
          const { objectId, subject } = tuple;
          if (subject.kind !== 'user') throw new Error('all are users');
          const text = `${objectId}@${JSON.stringify({ user_id: subject.userId })}`;
          if (op === 'insert') known.add(text);
          else known.delete(text);
        }
      } else if (event.kind === 'resync') {
        const { tenantId, token } = event;
        this.#tuples.set(tenantId, await stored(this.#projectId, tenantId, token));
      }
      this.#cursor = event.cursor;
      idle?.refresh();
      taken++;
      if (taken >= count && until()) break;
    }
  }
}

inShort(test)(
  'an import into an empty tenant is told to who was away, after every write of the others',
  async () => {
    const projectId = await newProject();
    const [here, there] = instances;
    const follower = new Follower(projectId);
    await follower.follow(here, { count: 1 });
    await write(here, projectId, 'a', 'first');
    await importTuples(there, projectId, 'b', 0);
    await write(there, projectId, 'a', 'second');
    await write(here, projectId, 'b', 'later');
    await follower.follow(there, { count: 1, until: () => follower.kinds.includes('resync b') });
    expect(follower.kinds.toSorted()).toEqual([
      'changes',
      'changes',
      'heartbeat',
      'heartbeat',
      'resync b',
    ]);
    for (const tenantId of ['a', 'b']) {
      expect(follower.tuplesOf(tenantId)).toEqual(await stored(projectId, tenantId));
    }
    // Nothing of it comes again.
    await write(here, projectId, 'b', 'last');
    await follower.follow(here, { count: 2 });
    expect(follower.kinds.slice(-2)).toEqual(['heartbeat', 'changes']);
  },
);

inShort(test)(
  'where changes are gone for another reason as well the cursor is refused',
  async () => {
    const projectId = await newProject();
    const [here] = instances;
    const follower = new Follower(projectId);
    await follower.follow(here, { count: 1 });
    await importTuples(here, projectId, 'b', 0);
    await write(here, projectId, 'b', 'one');
    await write(here, projectId, 'b', 'two');
    await database.pool.query(
      `update shard set retained_from = seq where project_id = $1 and tenant_id = 'b'`,
      [projectId],
    );
    const again = follower.follow(here, { count: 1 });
    await expect(again).rejects.toMatchObject({ reason: 'WATCH_TOO_OLD' });
  },
);

type Step =
  | { readonly kind: 'write' | 'import' | 'clear'; readonly tenant: number; readonly at: number }
  | { readonly kind: 'follow'; readonly at: number; readonly count: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('write', 'write', 'import', 'import', 'clear'),
    tenant: fc.integer({ min: 0, max: 1 }),
    at: fc.integer({ min: 0, max: 1 }),
  }),
  fc.record({
    kind: fc.constant('follow' as const),
    at: fc.integer({ min: 0, max: 1 }),
    count: fc.integer({ min: 1, max: 4 }),
  }),
);

test(`whatever happens to two tenants while a follower is away, it has them in the end (SEED=${seed})`, async () => {
  let resyncs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 8, maxLength: 24 }), async (steps) => {
      const projectId = await newProject();
      const follower = new Follower(projectId);
      await follower.follow(instances[0], { count: 1 });
      for (const [n, step] of steps.entries()) {
        const at = instances[step.at % 2] as Instance;
        if (step.kind === 'follow') {
          await follower.follow(at, { count: step.count, idleMs: 100 });
          continue;
        }
        const tenantId = `t${step.tenant}`;
        if (step.kind === 'write') await write(at, projectId, tenantId, `w${n}`);
        else if (step.kind === 'import') await importTuples(at, projectId, tenantId, n * 20);
        else await clear(at, projectId, tenantId);
      }
      const last = ['t0', 't1'];
      for (const tenantId of last) await write(instances[0], projectId, tenantId, 'last');
      const hasLast = (tenantId: string): boolean =>
        follower.tuplesOf(tenantId).has('last@{"user_id":"u"}');
      await follower.follow(instances[1], { count: 1, until: () => last.every(hasLast) });
      for (const tenantId of last) {
        expect(follower.tuplesOf(tenantId)).toEqual(await stored(projectId, tenantId));
      }
      resyncs += follower.kinds.filter((kind) => kind.startsWith('resync')).length;
    }),
    { seed, numRuns: Math.max(1, Math.round(byLength(2, 8) * FUZZ_RUNS)) },
  );
  expect(resyncs).toBeGreaterThan(0);
}, 240_000);
