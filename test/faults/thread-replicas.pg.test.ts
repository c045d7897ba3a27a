import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { byLength } from '../support/test-length.ts';
import { type Member, startProcess, startWhole } from './members.ts';
import { attempt, ok, until } from './support.ts';

/*
 * Single Checks of one tenant, in the long run as fast as two instances answer them, most from replicas on the threads of their gateways, while
 * what they are about changes. What belongs together is written in one commit, so that an index that is seen half changed
 * would give an answer that no state gives.
 */
const PROJECT = 'hot';
const LOADERS = byLength(2, 12);
/** Between two questions of a loader; replicas are there from ten Checks a second on. */
const PAUSE_MS = byLength(20, 0);
const ANSWERS_MIN = byLength(60, 2_000);
const SWAPS_MIN = byLength(8, 100);
const WRITERS = byLength(['w0'], ['w0', 'w1', 'w2']);
const ROUNDS = byLength(2, 10);
const CHECK_PATH = '/workspace.v1.AuthzService/Check';

let database: TestDatabase;
let services: readonly [Member, Member];
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

beforeAll(async () => {
  database = await createTestDatabase();
  const env = {
    GATEWAY_WORKERS: '1',
    GATEWAY_THREAD_CHECKS_PER_SECOND: '10',
  };
  services = await Promise.all([startProcess(database, env), startWhole(database, env)]);
  const project = { id: PROJECT, name: 'P', model_json: modelOf('red') };
  ok(await attempt(services[0], 'AdminService/CreateProject', project));
}, 120_000);

afterAll(async () => {
  for (const service of services) expect(await service.stop()).toBe(0);
  agent.destroy();
  await database.drop();
});

function modelOf(source: 'red' | 'blue'): string {
  const doc = {
    a: {},
    b: {},
    parent: {},
    reader: {},
    either: { union: [{ computed: 'a' }, { computed: 'b' }] },
    both: { intersection: [{ computed: 'a' }, { computed: 'b' }] },
    one: { exclusion: { include: { computed: 'either' }, exclude: { computed: 'both' } } },
    inherited: { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
    red: {},
    blue: {},
    color: { computed: source },
  };
  const namespaces = {
    doc: { relations: doc },
    folder: { relations: { viewer: {} } },
    group: { relations: { member: {} } },
  };
  return JSON.stringify({ schema_version: 1, namespaces });
}

type Fields = Readonly<Record<string, unknown>>;

const user = (user_id: string): Fields => ({ subject: { user_id } });
const set = (namespace: string, object_id: string, relation: string): Fields => ({
  subject: { set: { namespace, object_id, relation } },
});

function update(isThere: boolean, object: string, relation: string, rest: Fields): object {
  const [namespace, object_id] = object.split(':');
  const op = isThere ? 'OP_INSERT' : 'OP_DELETE';
  return { op, tuple: { namespace, object_id, relation, ...rest } };
}

async function write(service: Member, updates: readonly object[]): Promise<string> {
  const body = { project_id: PROJECT, tenant_id: 't', updates };
  const answer = ok(await attempt(service, 'AuthzService/WriteRelationTuples', body));
  return String(answer['consistency_token']);
}

/** `allowed` of one Check, or the status of its refusal; over one of few connections that stay open, as `fetch` takes ten times as long. */
function check(
  service: Member,
  object: string,
  relation: string,
  userId: string,
  rest: Fields = {},
): Promise<boolean | number> {
  const [namespace, object_id] = object.split(':');
  const question = { namespace, object_id, relation, subject_user_id: userId };
  const body = JSON.stringify({ project_id: PROJECT, tenant_id: 't', ...question, ...rest });
  const { promise, resolve, reject } = Promise.withResolvers<boolean | number>();
  const headers = {
    authorization: `Bearer ${service.token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const url = new URL(CHECK_PATH, service.baseUrl);
  const call = request(url, { method: 'POST', agent, headers }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => (text += part));
    response.on('end', () => {
      const { statusCode = 0 } = response;
      resolve(statusCode === 200 ? JSON.parse(text).allowed === true : statusCode);
    });
    response.on('error', reject);
  });
  call.on('error', reject);
  call.end(body);
  return promise;
}

/** Single Checks that were answered on the thread of the gateway. */
async function answeredThere(service: Member): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = /^gatehouse_thread_checks_total\{outcome="answered"\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? Number.NaN);
}

/** Asks until each instance has answered `count` more there. */
async function untilAnsweredThere(count: number): Promise<void> {
  const from = await Promise.all(services.map(answeredThere));
  for (;;) {
    // All metrics are made for each look, which costs more than the questions.
    await sleep(byLength(100, 50));
    const now = await Promise.all(services.map(answeredThere));
    if (now.every((answered, i) => answered >= (from[i] ?? 0) + count)) return;
  }
}

/** Runs `work` while each instance is asked by as many as keep it busy; `ask` is given the number of the question. */
async function underLoad(
  ask: (service: Member, number: number) => Promise<void>,
  work: () => Promise<void>,
): Promise<void> {
  let isOver = false;
  const load = services.flatMap((service) =>
    Array.from({ length: LOADERS }, async (_, loader) => {
      for (let number = loader; !isOver; number++) {
        await ask(service, number);
        if (PAUSE_MS > 0) await sleep(PAUSE_MS);
      }
    }),
  );
  const ended = Promise.all(load);
  try {
    await Promise.race([work(), ended]);
  } finally {
    isOver = true;
  }
  await ended;
}

const QUESTIONS = [
  ['doc:swap', 'either', true],
  ['doc:swap', 'both', false],
  ['doc:swap', 'one', true],
  ['doc:pair', 'one', false],
  ['doc:groups', 'reader', true],
  ['doc:moved', 'inherited', true],
] as const;

/**
 * The commit that leads to state `isFirst`, and back from it: nobody is to see what lies between. What belongs together lies in both
 * halves of it.
 */
function swap(isFirst: boolean): readonly object[] {
  return [
    update(isFirst, 'doc:swap', 'a', user('u')),
    update(isFirst, 'doc:pair', 'a', user('u')),
    update(isFirst, 'group:g1', 'member', user('u')),
    update(isFirst, 'doc:moved', 'parent', set('folder', 'f1', '')),
    update(!isFirst, 'doc:swap', 'b', user('u')),
    update(isFirst, 'doc:pair', 'b', user('u')),
    update(!isFirst, 'group:g2', 'member', user('u')),
    update(!isFirst, 'doc:moved', 'parent', set('folder', 'f2', '')),
  ];
}

test('no Check sees half a commit, and each sees what was acknowledged anywhere before it was sent', async () => {
  await write(services[0], [
    update(true, 'doc:swap', 'b', user('u')),
    update(true, 'group:g2', 'member', user('u')),
    update(true, 'doc:moved', 'parent', set('folder', 'f2', '')),
    update(true, 'doc:groups', 'reader', set('group', 'g1', 'member')),
    update(true, 'doc:groups', 'reader', set('group', 'g2', 'member')),
    update(true, 'folder:f1', 'viewer', user('u')),
    update(true, 'folder:f2', 'viewer', user('u')),
  ]);
  const wrong: string[] = [];
  let swaps = 0;
  let fresh = 0;
  let isOver = false;
  const swapper = async (): Promise<void> => {
    for (; !isOver; swaps++) {
      const service = services[swaps % 2] as Member;
      await write(service, swap(swaps % 2 === 0));
      // Replicas that are never up to date answer nothing.
      await sleep((swaps % 4) * 10);
    }
  };
  const writer = async (name: string): Promise<void> => {
    for (let step = 0; !isOver; step++) {
      const isGranted = step % 2 === 0;
      const writes = services[(step >> 1) % 2] as Member;
      const token = await write(writes, [update(isGranted, `doc:${name}`, 'a', user(name))]);
      const asked = services.flatMap((service) =>
        [{}, { at_least_consistency_token: token }].map(async (rest) => {
          const allowed = await check(service, `doc:${name}`, 'either', name, rest);
          if (allowed !== isGranted) wrong.push(`${name} ${step}: ${allowed}`);
          fresh += 1;
        }),
      );
      await Promise.all(asked);
    }
  };
  const ask = async (service: Member, number: number): Promise<void> => {
    const [object, relation, expected] = QUESTIONS[
      number % QUESTIONS.length
    ] as (typeof QUESTIONS)[0];
    const allowed = await check(service, object, relation, 'u');
    if (allowed !== expected) wrong.push(`${object}#${relation}: ${allowed}`);
  };
  await underLoad(ask, async () => {
    const changes = [swapper(), ...WRITERS.map(writer)];
    const ended = Promise.all(changes);
    const enough = async (): Promise<void> => {
      await untilAnsweredThere(ANSWERS_MIN);
      await until(() => swaps >= SWAPS_MIN && fresh >= SWAPS_MIN);
    };
    await Promise.race([enough(), ended]).finally(() => (isOver = true));
    await ended;
  });
  expect(wrong).toEqual([]);
}, 240_000);

test('a model counts, and a suspension, from its acknowledgement by any instance on', async () => {
  await write(services[0], [update(true, 'doc:color', 'red', user('u'))]);
  const statuses = new Set<unknown>();
  const ask = async (service: Member): Promise<void> =>
    void statuses.add(await check(service, 'doc:color', 'color', 'u'));
  await underLoad(ask, async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      // A replica again that answers under the model of the round before.
      await untilAnsweredThere(50);
      const [first, second] = services;
      const [changing, other] = round % 2 === 0 ? [first, second] : [second, first];
      const source = (round >> 1) % 2 === 0 ? 'red' : 'blue';
      const change = async (fields: Fields): Promise<unknown> =>
        ok(await attempt(changing, 'AdminService/UpdateProject', { id: PROJECT, ...fields }));
      const seen = async (): Promise<unknown[]> =>
        Promise.all([other, changing].map((service) => check(service, 'doc:color', 'color', 'u')));
      await change({ model_json: modelOf(source) });
      for (let i = 0; i < 10; i++) {
        expect(await seen(), `round ${round}`).toEqual([source === 'red', source === 'red']);
      }
      await change({ status: 'PROJECT_STATUS_SUSPENDED' });
      for (let i = 0; i < 10; i++) expect(await seen(), `round ${round}`).toEqual([412, 412]);
      await change({ status: 'PROJECT_STATUS_ACTIVE' });
      expect(await seen(), `round ${round}`).toEqual([source === 'red', source === 'red']);
    }
  });
  expect(statuses).toEqual(new Set([412, false, true]));
}, 240_000);

test('a tuple that expires counts until then, by the clock of the database, and not again', async () => {
  const { rows } = await database.pool.query<{ ends: Date }>(
    `select clock_timestamp() + interval '${byLength(2, 4)} seconds' as ends`,
  );
  const ends = rows[0]?.ends ?? new Date(Number.NaN);
  await write(services[0], [
    update(true, 'doc:ending', 'a', { ...user('u'), expires_at: ends.toISOString() }),
  ]);
  let back = 0;
  const hasEnded = new Set<Member>();
  const ask = async (service: Member): Promise<void> => {
    const wasOver = hasEnded.has(service);
    const allowed = await check(service, 'doc:ending', 'either', 'u');
    if (allowed !== true) hasEnded.add(service);
    else if (wasOver) back += 1;
  };
  await underLoad(ask, async () => {
    await untilAnsweredThere(byLength(50, 200));
    await until(async () => {
      await sleep(20);
      const now = await database.pool.query<{ over: boolean }>(
        // What the instances know of that clock is some milliseconds wide.
        `select clock_timestamp() > $1::timestamptz + interval '100 milliseconds' as over`,
        [ends.toISOString()],
      );
      return now.rows[0]?.over === true;
    });
    for (const service of services) {
      expect(await check(service, 'doc:ending', 'either', 'u')).toBe(false);
    }
    await untilAnsweredThere(byLength(50, 200));
  });
  expect(back).toBe(0);
}, 120_000);

test('what a context decides is decided by it', async () => {
  const condition = {
    condition_name: 'ip_in_cidrs',
    condition_params: { cidrs: ['10.0.0.0/8'] },
  };
  await write(services[0], [
    update(true, 'doc:net', 'a', { ...user('u'), ...condition }),
    update(true, 'doc:plain', 'reader', user('u')),
    update(true, 'group:net', 'member', { ...user('u'), ...condition }),
    update(true, 'doc:both', 'a', set('group', 'net', 'member')),
    update(true, 'doc:both', 'b', { ...user('u'), ...condition }),
  ]);
  const asked = ['net', 'both'].flatMap((id) => [
    [`doc:${id}`, 'either', { context: { ip: '10.1.2.3' } }, true] as const,
    [`doc:${id}`, 'either', { context: { ip: '11.1.2.3' } }, false] as const,
    [`doc:${id}`, 'either', { context: { other: 1 } }, false] as const,
    [`doc:${id}`, 'either', {}, false] as const,
  ]);
  // Of another relation, and most: what a condition decides is left to workers.
  const plain = Array.from({ length: 8 }, () => [
    ['doc:plain', 'reader', { context: { ip: '11.1.2.3' } }, true] as const,
    ['doc:plain', 'reader', {}, true] as const,
    ['doc:none', 'reader', { context: { ip: '10.1.2.3' } }, false] as const,
  ]).flat();
  const all = [...asked, ...plain];
  const wrong: unknown[] = [];
  const ask = async (service: Member, number: number): Promise<void> => {
    const [object, relation, rest, expected] = all[number % all.length] as (typeof all)[0];
    const allowed = await check(service, object, relation, 'u', rest);
    if (allowed !== expected) wrong.push([object, rest, allowed]);
  };
  await underLoad(ask, () => untilAnsweredThere(byLength(70, 300)));
  expect(wrong).toEqual([]);
}, 120_000);

test('each Check is counted once, wherever it was answered', async () => {
  const sumOf = (text: string, series: RegExp): number =>
    [...text.matchAll(series)].reduce((sum, [, value]) => sum + Number(value), 0);
  for (const service of services) {
    await expect
      .poll(
        async () => {
          const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
          const decided = sumOf(text, /^authz_check_decisions_total\{.*\} (\d+)$/gm);
          const failed = sumOf(text, /^authz_decision_errors_total\{.*rpc="Check".*\} (\d+)$/gm);
          const evaluated = sumOf(text, /^gatehouse_eval_reads_count\{rpc="Check"\} (\d+)$/gm);
          const ended = sumOf(text, /^authz_check_duration_seconds_count\{rpc="Check"\} (\d+)$/gm);
          expect(ended).toBeGreaterThan(ANSWERS_MIN);
          return [decided + failed - ended, evaluated - decided];
        },
        // What workers counted comes four times a second.
        { timeout: 30_000 },
      )
      .toEqual([0, 0]);
  }
}, 120_000);
