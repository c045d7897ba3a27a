import { Code, ConnectError } from '@connectrpc/connect';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { WatchRequest, WatchResponse } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { pruneChanges } from '../../src/store/feed/retention.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { linesOf, plainTuples, postLines, tuplesOver, type Wire } from '../tuples/support.ts';

/* Every write is told once, those of a tenant in their order, to whoever follows, from wherever they go on. */

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const PRUNE_ALL = { ageMaxMs: 0, countMax: 0, ageMinMs: 0 };

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
async function newProject(instance = instances[0]): Promise<string> {
  const id = `p${++projects}`;
  await call(instance, 'AdminService/CreateProject', { id, name: id });
  return id;
}

async function call(
  { baseUrl, token, adminSecret }: Instance,
  method: string,
  body: object,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${baseUrl}/workspace.v1.${method}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'x-admin-secret': adminSecret,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  expect([response.status, answer]).toEqual([200, answer]);
  return answer;
}

/** Writes tuples `doc:ID#viewer@USER`; '-' in front of an id deletes. Returns the token. */
async function write(
  instance: Instance,
  projectId: string,
  tenantId: string,
  ...ids: readonly string[]
): Promise<string> {
  const updates = ids.map((id) => ({
    op: id.startsWith('-') ? 'OP_DELETE' : 'OP_INSERT',
    tuple: {
      namespace: 'doc',
      object_id: id.replace('-', ''),
      relation: 'viewer',
      subject: { user_id: 'u' },
    },
  }));
  const body = { project_id: projectId, tenant_id: tenantId, updates };
  const answer = await call(instance, 'AuthzService/WriteRelationTuples', body);
  return String(answer['consistency_token']);
}

type Asked = Partial<
  Pick<WatchRequest, 'projectId' | 'tenantId' | 'allTenants' | 'startAfter' | 'heartbeatSeconds'>
> & {
  readonly filter?: { readonly objectId?: string; readonly namespace?: string };
};

/** One stream, read in the background. */
class Reader {
  readonly messages: WatchResponse[] = [];
  error: ConnectError | undefined;
  readonly #stop = new AbortController();
  readonly ended: Promise<void>;

  constructor(instance: Instance, asked: Asked, wire: Wire = 'grpc') {
    const stream = tuplesOver(instance, wire).watch(asked, { signal: this.#stop.signal });
    this.ended = (async () => {
      try {
        for await (const message of stream) this.messages.push(message);
      } catch (error) {
        if (!this.#stop.signal.aborted) this.error = ConnectError.from(error);
      }
    })();
    onTestFinished(() => this.stop());
  }

  /** Writes as text: `tenant: +id -id`. */
  get told(): readonly string[] {
    return this.messages.flatMap(({ kind }) => {
      if (kind.case !== 'changes') return [];
      const ids = kind.value.updates.map(
        ({ op, tuple }) => `${op === TupleUpdate_Op.INSERT ? '+' : '-'}${tuple?.objectId ?? ''}`,
      );
      return [`${kind.value.tenantId}: ${ids.join(' ')}`];
    });
  }

  get cursor(): string {
    return this.messages.at(-1)?.cursor ?? '';
  }

  async until(isDone: () => boolean): Promise<void> {
    const deadline = performance.now() + 20_000;
    while (!isDone()) {
      if (this.error !== undefined) throw this.error;
      if (performance.now() > deadline) throw new Error(`told so far: ${this.told.join('; ')}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Until there was a first message: then it follows. */
  async begun(): Promise<this> {
    await this.until(() => this.messages.length > 0);
    return this;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }
}

const ofTenantIn = (text: string, told: readonly string[]): readonly string[] =>
  told.filter((one) => one.startsWith(text));

inShort(describe).each<Wire>(['grpc', 'connect', 'connect-json'])('over %s', (wire) => {
  test('tells what is written at another instance, once and in order, and goes on from a token', async () => {
    const projectId = await newProject();
    const [here, there] = instances;
    const first = await write(here, projectId, 't', 'a', 'b');
    const reader = new Reader(there, { projectId, tenantId: 't', startAfter: first }, wire);
    await write(here, projectId, 't', 'c');
    await write(here, projectId, 'other', 'x');
    await write(there, projectId, 't', '-a', 'd');
    await write(there, projectId, 't', '-nothing'); // changes nothing
    await reader.until(() => reader.told.length === 2);
    expect(reader.told).toEqual(['t: +c', 't: -a +d']);
    const [begun, changes] = reader.messages.map(({ kind }) => kind);
    expect(begun?.case).toBe('heartbeat');
    if (changes?.case !== 'changes') throw new Error('a write');
    expect(changes.value).toMatchObject({ rpc: 'WriteRelationTuples', expired: false });
    expect(Number(changes.value.committedAt?.seconds)).toBeGreaterThan(1_700_000_000);

    const [, one, second] = reader.messages;
    await reader.stop();
    await write(here, projectId, 't', 'e');
    for (const startAfter of [changes.value.consistencyToken, one?.cursor ?? '']) {
      const again = new Reader(here, { projectId, tenantId: 't', startAfter }, wire);
      await again.until(() => again.told.length === 2);
      expect(again.told).toEqual(['t: -a +d', 't: +e']);
      expect(again.messages[1]?.cursor).toBe(second?.cursor);
    }
  });

  test('tells at once that it follows, and from where, though nothing happens', async () => {
    const projectId = await newProject();
    const [here, there] = instances;
    for (const of of [{ tenantId: 't' }, { allTenants: true }]) {
      const reader = new Reader(there, { projectId, ...of, heartbeatSeconds: 60 }, wire);
      await reader.begun();
      expect(reader.messages.map(({ kind }) => kind.case)).toEqual(['heartbeat']);
      await reader.stop();
      await write(here, projectId, 't', 'meanwhile');
      const again = new Reader(here, { projectId, ...of, startAfter: reader.cursor }, wire);
      await again.until(() => again.told.length === 1);
      expect(again.told).toEqual(['t: +meanwhile']);
      await write(here, projectId, 't', '-meanwhile');
    }
  });
});

inShort(test)('tells the writes of all tenants, and only those that the filter takes', async () => {
  const projectId = await newProject();
  const [here, there] = instances;
  const heartbeatSeconds = 1;
  const all = await new Reader(here, { projectId, allTenants: true, heartbeatSeconds }).begun();
  const filter = { namespace: 'doc', objectId: 'x' };
  const some = await new Reader(there, {
    projectId,
    allTenants: true,
    heartbeatSeconds,
    filter,
  }).begun();
  await write(here, projectId, 'a', 'x', 'y');
  await write(there, projectId, 'b', 'z');
  await write(there, projectId, 'a', '-x');
  await all.until(() => all.told.length === 3);
  await some.until(() => some.told.length === 2);
  expect(ofTenantIn('a', all.told)).toEqual(['a: +x +y', 'a: -x']);
  expect(ofTenantIn('b', all.told)).toEqual(['b: +z']);
  expect(some.told).toEqual(['a: +x', 'a: -x']);
  // Its cursor has gone on beyond what it was not told.
  await some.until(() => some.messages.at(-1)?.kind.case === 'heartbeat');
  const again = new Reader(there, {
    projectId,
    allTenants: true,
    startAfter: some.cursor,
    heartbeatSeconds,
  });
  await again.begun();
  expect(again.told).toEqual([]);
});

test(`every write once and in order, of one tenant and of all, with cuts at any place (SEED=${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 5, maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 6 }),
      async (tenantsOfWrites, cuts) => {
        const projectId = await newProject();
        const ofTenant = new Map<string, string[]>();
        const start = await new Reader(instances[0], {
          projectId,
          allTenants: true,
          heartbeatSeconds: 1,
        }).begun();
        const writing = (async () => {
          // Writers on both instances at once; each tenant's writes one after the other.
          await Promise.all(
            [0, 1, 2, 3].map(async (tenant) => {
              let n = 0;
              for (const [at, of] of tenantsOfWrites.entries()) {
                if (of !== tenant) continue;
                const id = `w${n++}`;
                const list = ofTenant.get(`t${tenant}`) ?? [];
                ofTenant.set(`t${tenant}`, [...list, `t${tenant}: +${id}`]);
                await write(instances[at % 2] as Instance, projectId, `t${tenant}`, id);
              }
            }),
          );
        })();
        const told: string[] = [];
        let cursor = start.cursor;
        for (const [at, cut] of cuts.entries()) {
          const reader = new Reader(instances[at % 2] as Instance, {
            projectId,
            allTenants: true,
            startAfter: cursor,
            heartbeatSeconds: 1,
          });
          await reader.until(
            () => reader.told.length >= cut || reader.messages.at(-1)?.kind.case === 'heartbeat',
          );
          // Cut behind any message: what came after it is told again.
          const kept = reader.messages.slice(0, cut);
          cursor = kept.at(-1)?.cursor ?? cursor;
          const changes = kept.filter(({ kind }) => kind.case === 'changes').length;
          told.push(...reader.told.slice(0, changes));
          await reader.stop();
        }
        await writing;
        const last = new Reader(instances[0], {
          projectId,
          allTenants: true,
          startAfter: cursor,
          heartbeatSeconds: 1,
        });
        await last.until(() => told.length + last.told.length >= tenantsOfWrites.length);
        await last.stop();
        const everything = [...told, ...last.told];
        expect(everything).toHaveLength(tenantsOfWrites.length);
        for (const [tenant, writes] of ofTenant)
          expect(ofTenantIn(`${tenant}:`, everything)).toEqual(writes);
        await start.until(() => start.told.length === tenantsOfWrites.length);
        for (const [tenant, writes] of ofTenant)
          expect(ofTenantIn(`${tenant}:`, start.told)).toEqual(writes);
        await start.stop();
      },
    ),
    { seed, numRuns: Math.max(1, Math.round(byLength(2, 12) * FUZZ_RUNS)) },
  );
}, 120_000);

inShort(test)(
  'refuses a start whose changes are gone, and tells who follows meanwhile to read anew',
  async () => {
    const projectId = await newProject();
    const [here] = instances;
    const token = await write(here, projectId, 't', 'a');
    const all = await new Reader(here, {
      projectId,
      allTenants: true,
      heartbeatSeconds: 1,
    }).begun();
    const cursor = all.cursor;
    await all.stop();
    await write(here, projectId, 't', 'b');
    await write(here, projectId, 't', 'c');
    await pruneChanges(database.pool, PRUNE_ALL);
    for (const asked of [
      { projectId, tenantId: 't', startAfter: token },
      { projectId, allTenants: true, startAfter: cursor },
    ]) {
      const reader = new Reader(here, asked);
      await reader.ended;
      expect([reader.error?.code, reader.error?.rawMessage]).toEqual([
        Code.FailedPrecondition,
        expect.stringContaining('start_after'),
      ]);
    }
    const one = await new Reader(here, { projectId, tenantId: 't2', heartbeatSeconds: 1 }).begun();
    const every = await new Reader(here, {
      projectId,
      allTenants: true,
      heartbeatSeconds: 1,
    }).begun();
    const { status, body } = await postLines(
      here,
      `?project_id=${projectId}&tenant_id=t2`,
      linesOf(plainTuples(30)),
    );
    expect([status, body]).toEqual([200, body]);
    for (const reader of [one, every]) {
      await reader.until(() => reader.messages.some(({ kind }) => kind.case === 'resync'));
      const told = reader.messages.find(({ kind }) => kind.case === 'resync');
      const value = { tenantId: 't2', consistencyToken: body['consistency_token'] };
      expect(told?.kind).toMatchObject({ case: 'resync', value });
      expect(reader.told).toEqual([]);
    }
    await write(here, projectId, 't2', 'after');
    for (const reader of [one, every]) {
      await reader.until(() => reader.told.length === 1);
      expect(reader.told).toEqual(['t2: +after']);
    }
  },
);

inShort(test)(
  'who was told of one of several tenants to read anew, and goes on from there, is told of all',
  async () => {
    const projectId = await newProject();
    const [here] = instances;
    const { tupleWatch } = here.services;
    const asked = { projectId, tenantId: '', allTenants: true, heartbeatSeconds: 1 };
    const stop = new AbortController();
    const events = tupleWatch.watch({ ...asked, startAfter: '' }, stop.signal);
    expect((await events.next()).value).toMatchObject({ kind: 'heartbeat' });
    // Nobody looks meanwhile, so that one window has both.
    for (const tenantId of ['a', 'b']) {
      const query = `?project_id=${projectId}&tenant_id=${tenantId}`;
      expect((await postLines(here, query, linesOf(plainTuples(9)))).status).toBe(200);
    }
    const told = [(await events.next()).value, (await events.next()).value];
    expect(told).toMatchObject([
      { kind: 'resync', tenantId: 'a' },
      { kind: 'resync', tenantId: 'b' },
    ]);
    await events.return();
    const [first, second] = told.map((event) => event?.cursor ?? '');
    const early = tupleWatch.watch({ ...asked, startAfter: first ?? '' }, stop.signal);
    const again = [await early.next(), await early.next(), await early.next()];
    expect(again.map(({ value }) => value)).toMatchObject([
      { kind: 'heartbeat' },
      { kind: 'resync', tenantId: 'a' },
      { kind: 'resync', tenantId: 'b' },
    ]);
    await early.return();
    const late = tupleWatch.watch({ ...asked, startAfter: second ?? '' }, stop.signal);
    expect((await late.next()).value).toMatchObject({ kind: 'heartbeat' });
    await late.return();
  },
);

inShort(test)('tells of another model, and ends when the project is suspended', async () => {
  const projectId = await newProject();
  const [here, there] = instances;
  const readers = [
    await new Reader(there, { projectId, allTenants: true, heartbeatSeconds: 1 }).begun(),
    await new Reader(there, { projectId, tenantId: 't', heartbeatSeconds: 1 }).begun(),
  ];
  const modelJson = JSON.stringify({ namespaces: { doc: { relations: { viewer: {} } } } });
  await call(here, 'AdminService/UpdateProject', { id: projectId, model_json: modelJson });
  for (const reader of readers) {
    await reader.until(() => reader.messages.some(({ kind }) => kind.case === 'modelChanged'));
  }
  await call(here, 'AdminService/UpdateProject', {
    id: projectId,
    status: 'PROJECT_STATUS_SUSPENDED',
  });
  for (const reader of readers) {
    await reader.ended;
    expect(reader.error?.rawMessage).toContain('suspended');
  }
});

inShort(test)(
  'is off unless a setting says otherwise, and refuses more streams than that',
  async () => {
    const off = await startInstance(database, {});
    onTestFinished(() => off.stop());
    const refused = new Reader(off, {});
    await refused.ended;
    expect([refused.error?.code, refused.error?.rawMessage]).toEqual([
      Code.FailedPrecondition,
      expect.stringContaining('GATEWAY_WATCH_STREAMS'),
    ]);
    const one = await startInstance(database, { GATEWAY_WATCH_STREAMS: '1' });
    onTestFinished(() => one.stop());
    const first = await new Reader(one, { heartbeatSeconds: 1 }).begun();
    const second = new Reader(one, {});
    await second.ended;
    expect(second.error?.code).toBe(Code.ResourceExhausted);
    await first.stop();
    // Its place is free once the service has heard of it, which may be after the next one has come.
    await expect
      .poll(() =>
        new Reader(one, { heartbeatSeconds: 1 }).begun().then(({ error }) => error, codeOf),
      )
      .toBeUndefined();
  },
);

const codeOf = (error: unknown): Code | undefined => ConnectError.from(error).code;

inShort(test).each([
  [{ tenantId: 't', allTenants: true }, 'tenant_id'],
  [{ startAfter: 'x' }, 'token'],
  [{ startAfter: 'a.b' }, 'start_after'],
  [{ startAfter: `${'a'.repeat(100)}.${'b'.repeat(16)}` }, 'start_after'],
  [{ allTenants: true, startAfter: 'x'.repeat(40) }, 'start_after'],
  [{ heartbeatSeconds: -1 }, 'heartbeat_seconds'],
  [{ heartbeatSeconds: 61 }, 'heartbeat_seconds'],
  [{ filter: { objectId: 'x' } }, 'filter.object_id'],
  [{ tenantId: 'a\u0000b' }, 'tenant_id'],
] as const)('refuses %j', async (asked, named) => {
  const reader = new Reader(instances[0], asked);
  await reader.ended;
  expect(reader.error?.code).toBe(Code.InvalidArgument);
  expect(reader.error?.rawMessage).toContain(named);
});

inShort(test)('a cursor is good for its own watch only', async () => {
  const [a, b] = [await newProject(), await newProject()];
  const [here] = instances;
  const ofTenant = await new Reader(here, {
    projectId: a,
    tenantId: 't',
    heartbeatSeconds: 1,
  }).begun();
  const ofAll = await new Reader(here, {
    projectId: a,
    allTenants: true,
    heartbeatSeconds: 1,
  }).begun();
  for (const asked of [
    { projectId: b, tenantId: 't', startAfter: ofTenant.cursor },
    { projectId: a, tenantId: 'other', startAfter: ofTenant.cursor },
    { projectId: a, allTenants: true, startAfter: ofTenant.cursor },
    { projectId: a, tenantId: 't', startAfter: ofAll.cursor },
    { projectId: b, allTenants: true, startAfter: ofAll.cursor },
    { projectId: a, tenantId: 't', startAfter: await write(here, a, 'other', 'x') },
  ]) {
    const reader = new Reader(here, asked);
    await reader.ended;
    expect(reader.error?.code).toBe(Code.InvalidArgument);
    expect(reader.error?.rawMessage).toMatch(/^start_after: /);
  }
});

inShort(describe)('server-sent events', () => {
  async function events(query: string, headers: Readonly<Record<string, string>> = {}) {
    const [, there] = instances;
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const response = await fetch(`${there.baseUrl}/v1/watch${query}`, {
      headers: { authorization: `Bearer ${there.token}`, ...headers },
      signal: stop.signal,
    });
    return { response, stop };
  }

  test('tell the same, and go on behind the last id', async () => {
    const projectId = await newProject();
    const [here] = instances;
    const token = await write(here, projectId, 't', 'a');
    await write(here, projectId, 't', 'b');
    await write(here, projectId, 't', 'c');
    const query = `?project_id=${projectId}&tenant_id=t&start_after=${token}`;
    const read = async (headers: Readonly<Record<string, string>>, count: number) => {
      const { response, stop } = await events(query, headers);
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      let text = '';
      const decoder = new TextDecoder();
      for await (const chunk of response.body as ReadableStream<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true });
        if (text.split('event: changes').length > count && text.endsWith('\n\n')) break;
      }
      stop.abort();
      return text
        .split('\n\n')
        .filter((event) => event.startsWith('event: changes'))
        .map((event) => {
          const [, id = ''] = /^id: (.*)$/m.exec(event) ?? [];
          const [, data = ''] = /^data: (.*)$/m.exec(event) ?? [];
          const { changes } = JSON.parse(data) as {
            changes: { updates: readonly { tuple: { object_id: string } }[] };
          };
          return [id, changes.updates.map(({ tuple }) => tuple.object_id).join()] as const;
        });
    };
    const both = await read({}, 2);
    expect(both.map(([, ids]) => ids)).toEqual(['b', 'c']);
    const rest = await read({ 'last-event-id': both[0]?.[0] ?? '' }, 1);
    expect(rest).toEqual([both[1]]);
  });

  test.each([
    ['?unknown=1', {}, 400],
    ['?start_after=nonsense', {}, 400],
    ['?heartbeat_seconds=x', {}, 400],
    ['', { authorization: 'Bearer wrong' }, 401],
    ['', { origin: 'http://elsewhere.example' }, 403],
  ] as const)('refuse %s %j', async (query, headers, status) => {
    const { response } = await events(query, headers);
    expect(response.status).toBe(status);
    await response.body?.cancel();
  });
});

inShort(test)(
  'ends where the changes of more tenants are gone than can be named, instead of leaving some out',
  async () => {
    const projectId = await newProject();
    const { pool } = database;
    const [here] = instances;
    const asked = { projectId, allTenants: true, heartbeatSeconds: 1 };
    const reader = await new Reader(here, asked).begun();
    await pool.query(
      `insert into shard (project_id, tenant_id, seq, retained_from, pruned_txid)
     select $1, 't' || n, 1, 2, pg_current_xact_id() from generate_series(1, 1001) n`,
      [projectId],
    );
    await reader.ended;
    expect(reader.error?.code).toBe(Code.FailedPrecondition);
    expect(reader.messages.some(({ kind }) => kind.case === 'resync')).toBe(false);
  },
);

inShort(test)(
  'what is pruned of a tenant is found without looking through those of the others',
  async () => {
    const projectId = await newProject();
    const { pool } = database;
    await pool.query(`insert into shard (project_id, tenant_id, seq)
    values ('${projectId}', 'old', 2000), ('${projectId}', 'new', 20000)`);
    for (const [tenant, count] of [
      ['old', 2_000],
      ['new', 20_000],
    ]) {
      await pool.query(
        `insert into tuple_change (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes, settings_version)
       select $1, $2, n, n, gen_random_uuid(), 'R', '', '[]', 0 from generate_series(1, $3::int) n`,
        [projectId, tenant, count],
      );
    }
    await pool.query('analyze tuple_change');
    const client = await pool.connect();
    onTestFinished(() => client.release(true));
    await client.query('begin');
    // What this transaction alone has read of the index: streams of other tests read it, too.
    const read = async (): Promise<unknown> => {
      const counted = await client.query(
        `select pg_stat_get_xact_tuples_returned('tuple_change_by_txid'::regclass)::int as read`,
      );
      return counted.rows;
    };
    const { rows } = await client.query(
      `update shard set retained_from = 1900 where project_id = $1 and tenant_id = 'old'
     returning pruned_txid is not null as noted`,
      [projectId],
    );
    expect(rows).toEqual([{ noted: true }]);
    expect(await read()).toEqual([{ read: 0 }]);
    await client.query(`set local enable_seqscan = off`);
    await client.query(
      `select 1 from tuple_change where project_id = $1 order by txid desc limit 1`,
      [projectId],
    );
    expect(await read()).toEqual([{ read: 1 }]);
    await client.query('rollback');
  },
);
