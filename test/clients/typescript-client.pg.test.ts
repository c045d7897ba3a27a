import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import {
  Denied,
  GatehouseClient,
  GatehouseError,
  inSession,
  REASONS,
  Session,
  type WatchEvent,
} from '../../clients/typescript/src/index.ts';
import { http2Transport } from '../../clients/typescript/src/node.ts';
import { CODE_OF_REASON } from '../../src/gateway/connect/connect-error.ts';
import { instanceForFile } from '../support/instance.ts';

const { instance } = await instanceForFile({ GATEWAY_WATCH_STREAMS: '10' });
const { baseUrl, token } = instance;

type Sent = { readonly method: string; readonly headers: Headers; readonly body: Body };
type Body = {
  readonly scope?: { readonly at_least_consistency_token?: string };
  readonly items?: readonly unknown[];
  readonly idempotencyKey?: string;
};
type Fetch = typeof globalThis.fetch;

/** A client whose calls are seen, and may be answered by `between` instead of the service. */
function clientWith(
  between: (call: () => Promise<Response>, nth: number, init: RequestInit) => Promise<Response> = (
    call,
  ) => call(),
  options: Partial<ConstructorParameters<typeof GatehouseClient>[0]> = {},
): { readonly client: GatehouseClient; readonly sent: Sent[] } {
  const sent: Sent[] = [];
  const seen: Fetch = (input, init = {}) => {
    const method = new URL(input).pathname.split('/').at(-1) ?? '';
    const { body: bytes } = init;
    const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes as Uint8Array).toString();
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Body;
    sent.push({ method, headers: new Headers(init.headers), body });
    return between(() => fetch(input, init), sent.length, init);
  };
  return { client: new GatehouseClient({ baseUrl, token, fetch: seen, ...options }), sent };
}

const { client: plain } = clientWith();
let objects = 0;
/** A viewer relation on an object that no other test has. */
const fresh = (): { namespace: string; objectId: string; relation: string } => ({
  namespace: 'resource',
  objectId: `object-${(objects += 1)}`,
  relation: 'viewer',
});
const unavailable = (): Response =>
  Response.json({ code: 'unavailable', message: 'later' }, { status: 503 });
/** Never answers, but ends as a call does that is aborted. */
const hangs = (init: RequestInit): Promise<Response> =>
  new Promise((_, reject) => {
    const { signal } = init;
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

test('questions of one tick travel in one batch, and each gets its answer', async () => {
  const { client, sent } = clientWith();
  const object = fresh();
  await plain.write([{ ...object, subject: 'ann' }]);
  const users = ['ann', 'ben', 'ann', 'cid'];
  const answers = await Promise.all(users.map((subject) => client.check({ ...object, subject })));
  expect(answers).toEqual([true, false, true, false]);
  expect(await client.checkAll(users.map((subject) => ({ ...object, subject })))).toEqual(answers);
  expect(sent.map(({ method, body }) => [method, body.items?.length])).toEqual([
    ['BatchCheck', 4],
    ['BatchCheck', 4],
  ]);
});

test('what would be another grant than is meant is refused with its field, and nothing is sent', async () => {
  const { client, sent } = clientWith();
  const tuple = { ...fresh(), subject: 'ann' };
  const faults = [
    ['tuples[0].subject.everyone', { ...tuple, subject: { everyone: false } }],
    [
      'tuples[0].subject.namespace',
      { ...tuple, subject: { everyone: true, namespace: 'resource' } },
    ],
    ['tuples[0].subject.relaton', { ...tuple, subject: { ...fresh(), relaton: 'viewer' } }],
    ['tuples[0].subject', { ...tuple, subject: null }],
    ['tuples[0].condition', { ...tuple, condition: '' }],
    ['tuples[0].conditon', { ...tuple, conditon: 'office' }],
    ['tuples[0].expiresat', { ...tuple, expiresat: new Date(0) }],
    ['tuples[0].expiresAt', { ...tuple, expiresAt: new Date(Number.NaN) }],
    ['tuples[0].objectId', { ...tuple, objectId: 7 }],
    ['tuples[0]', null],
  ] as const;
  const fieldOf = (error: unknown): unknown =>
    error instanceof GatehouseError && error.reason === 'FIELD_INVALID' && error.metadata['field'];
  for (const [field, wrong] of faults) {
    const ends = await client.write([wrong as never]).catch(fieldOf);
    expect(ends).toBe(field);
  }
  const given = client.check(tuple, { contextualTuples: [{ ...tuple, condition: '' }] });
  expect(await given.catch(fieldOf)).toBe('contextualTuples[0].condition');
  expect(sent).toEqual([]);
  expect(await plain.check(tuple)).toBe(false);
});

test('a question that no message holds fails alone', async () => {
  const { client, sent } = clientWith();
  const right = { ...fresh(), subject: 'ann' };
  const wrong = [{ ...right, subject: null }, { ...right, objectId: 7 }, null] as never[];
  const answers = await Promise.allSettled([right, ...wrong].map((one) => client.check(one)));
  expect(answers.map(({ status }) => status)).toEqual([
    'fulfilled',
    ...wrong.map(() => 'rejected'),
  ]);
  expect(sent.length).toBe(1);
});

test('every object of a namespace can be granted something', async () => {
  const open = fresh();
  await plain.write([{ ...open, subject: { wildcardOf: 'group' } }]);
  const ask = (namespace: string): Promise<boolean> =>
    plain.check({ ...open, subject: { namespace, objectId: 'any' } });
  expect([await ask('group'), await ask('workspace')]).toEqual([true, false]);
});

test('what differs in tenant, token or tuples travels apart; contexts travel together', async () => {
  const { client, sent } = clientWith();
  const object = fresh();
  const question = { ...object, subject: 'ann' };
  const { consistencyToken } = await plain.write([question]);
  const answers = await Promise.all([
    client.check(question, { context: { a: 1 } }),
    client.check(question, { context: { a: 2 } }),
    client.check(question, { tenant: 'other' }),
    client.check(question, { token: consistencyToken }),
    client.check(
      { ...object, subject: 'ben' },
      { contextualTuples: [{ ...object, subject: 'ben' }] },
    ),
  ]);
  expect(answers).toEqual([true, true, false, true, true]);
  expect(sent.map(({ body }) => body.items?.length)).toEqual([2, 1, 1, 1]);
  expect(sent.map(({ headers }) => headers.get('x-gatehouse-shard'))).toEqual([
    '/',
    '/other',
    '/',
    '/',
  ]);
});

test('a signal or a deadline ends one question, and the call with the last of them', async () => {
  const ended: unknown[] = [];
  const { client } = clientWith((_call, _nth, init) => {
    init.signal?.addEventListener('abort', () => ended.push(init.signal?.reason));
    return hangs(init);
  });
  const question = { ...fresh(), subject: 'ann' };
  const leaving = new AbortController();
  const first = client.check(question, { signal: leaving.signal });
  const second = client.check(question, { timeoutMs: 200 });
  await sleep(20);
  leaving.abort();
  await expect(first).rejects.toMatchObject({ code: 'cancelled' });
  expect(ended).toEqual([]);
  await expect(second).rejects.toMatchObject({ code: 'deadline_exceeded' });
  await expect.poll(() => ended.length).toBe(1);
  await expect(client.check(question, { signal: leaving.signal })).rejects.toBeInstanceOf(
    GatehouseError,
  );
});

test('one question with a short time does not end its neighbour', async () => {
  const { client, sent } = clientWith(async (call) => {
    await sleep(150);
    return call();
  });
  const question = { ...fresh(), subject: 'ann' };
  const [short, long] = await Promise.allSettled([
    client.check(question, { timeoutMs: 30 }),
    client.check(question, { timeoutMs: 10_000 }),
  ]);
  expect(short).toMatchObject({ status: 'rejected', reason: { code: 'deadline_exceeded' } });
  expect(long).toEqual({ status: 'fulfilled', value: false });
  expect(sent).toHaveLength(1);
});

test('a session sees its own writes by their token, in another process too', async () => {
  const { client, sent } = clientWith();
  const question = { ...fresh(), subject: 'ann' };
  const session = new Session();
  await inSession(session, async () => {
    await client.write([question]);
    expect(await client.check(question)).toBe(true);
  });
  const kept = session.toString();
  expect(kept).toMatch(/^~~[\w-]+$/);
  expect(await client.check(question, { session: Session.from(kept) })).toBe(true);
  const tokens = sent.map(({ body }) => body.scope?.at_least_consistency_token ?? '');
  expect(tokens).toEqual(['', kept.slice(2), kept.slice(2)]);
});

test('a token that the service refuses is dropped once, and the question asked of the latest state', async () => {
  const { client, sent } = clientWith();
  const question = { ...fresh(), subject: 'ann' };
  await plain.write([question]);
  const session = Session.from(`~~${'A'.repeat(40)}`);
  expect(await client.check(question, { session })).toBe(true);
  expect(sent).toHaveLength(2);
  expect(await client.check(question, { session })).toBe(true);
  expect(sent).toHaveLength(3);
  expect(
    await client.listObjects({ ...question }, { session: Session.from(`~~${'B'.repeat(40)}`) }),
  ).toEqual(
    [question.objectId, ...(await client.listObjects(question))]
      .toSorted()
      .filter((id, at, all) => all.indexOf(id) === at),
  );
  // A token that the caller gave itself is the caller's word: it is not dropped.
  await expect(client.check(question, { token: 'A'.repeat(40) })).rejects.toMatchObject({
    reason: 'TOKEN_INVALID',
    metadata: { field: expect.stringContaining('at_least_consistency_token') as string },
  });
});

test('a late answer, or writes side by side, never take a session back', () => {
  const shard = { project: 'p', tenant: 't' };
  const tokenOf = (session: Session): string => session.sent(shard).token;
  const session = new Session();
  const early = session.sent(shard);
  session.wrote(shard, session.sent(shard), 'write-1');
  session.read(shard, early, 'old');
  expect(tokenOf(session)).toBe('write-1');
  const both = [session.sent(shard), session.sent(shard)] as const;
  session.wrote(shard, both[0], 'write-2');
  session.wrote(shard, both[1], 'write-3');
  expect(tokenOf(session)).toBe('');
  session.read(shard, session.sent(shard), 'after-both');
  expect(tokenOf(session)).toBe('after-both');
  session.drop(shard, 'another');
  expect(tokenOf(session)).toBe('after-both');
});

test('a cookie of anybody’s making gives no more than tokens of the right form', () => {
  const hostile = [
    '',
    '!!!',
    '~',
    `a~b~${'x'.repeat(10_000)}`,
    'A~b~cccccccccccccccc',
    '\0',
    '\ud800',
  ];
  for (const text of hostile) expect(Session.from(text).toString()).toBe('');
  expect(Session.from(null).toString()).toBe('');
  const many = Array.from({ length: 50 }, (_, n) => `p~t${n}~${'x'.repeat(40)}`).join('!');
  expect(Session.from(many).toString().split('!')).toHaveLength(16);
});

test('a read is made again while its error passes, and not otherwise', async () => {
  const question = { ...fresh(), subject: 'ann' };
  await plain.write([question]);
  const twice = clientWith((call, nth) => (nth < 3 ? Promise.resolve(unavailable()) : call()));
  expect(await twice.client.check(question)).toBe(true);
  expect(twice.sent).toHaveLength(3);
  const always = clientWith(() => Promise.reject(new TypeError('fetch failed')));
  await expect(always.client.check(question)).rejects.toMatchObject({
    code: 'unavailable',
    reason: '',
  });
  expect(always.sent).toHaveLength(3);
  const wrong = clientWith();
  await expect(wrong.client.check({ ...question, relation: 'No!' })).rejects.toMatchObject({
    code: 'invalid_argument',
    reason: 'FIELD_INVALID',
  });
  expect(wrong.sent).toHaveLength(1);
});

test('a write is made again only where asked, and is then done once', async () => {
  const lost = async (call: () => Promise<Response>, nth: number): Promise<Response> => {
    const response = await call();
    if (nth === 1) throw new TypeError('the connection broke');
    return response;
  };
  const once = clientWith(lost);
  const first = { ...fresh(), subject: 'ann' };
  await expect(once.client.write([first])).rejects.toMatchObject({ code: 'unavailable' });
  expect(once.sent).toHaveLength(1);
  const again = clientWith(lost);
  const second = { ...fresh(), subject: 'ann' };
  expect(await again.client.write([second], { retry: true })).toMatchObject({ replayed: true });
  const keys = again.sent.map(({ body }) => body.idempotencyKey);
  expect(keys).toHaveLength(2);
  expect(keys[0]).toMatch(/^[\w-]{36}$/);
  expect(keys[1]).toBe(keys[0]);
  expect(await again.client.check(second)).toBe(true);
});

test('a hedged question takes the first of two answers, and ends the other call', async () => {
  let ended = 0;
  const question = { ...fresh(), subject: 'ann' };
  await plain.write([question]);
  const { client, sent } = clientWith((call, nth, init) => {
    if (nth > 1) return call();
    init.signal?.addEventListener('abort', () => (ended += 1));
    return hangs(init);
  });
  expect(await client.check(question, { hedgeAfterMs: 20 })).toBe(true);
  expect(sent).toHaveLength(2);
  expect(ended).toBe(1);
});

test('a deny can be an error, an explanation, a list', async () => {
  const object = fresh();
  await plain.change({ insert: [{ ...object, subject: 'ann' }] });
  await plain.demand({ ...object, subject: 'ann' });
  const denied = plain.demand({ ...object, subject: 'ben' });
  await expect(denied).rejects.toBeInstanceOf(Denied);
  expect((await plain.explain({ ...object, subject: 'ben' })).remedies.length).toBeGreaterThan(0);
  expect((await plain.listSubjects(object)).userIds).toEqual(['ann']);
  expect(await plain.listObjects({ ...object, subject: 'ann' })).toContain(object.objectId);
  await plain.delete([{ ...object, subject: 'ann' }]);
  expect(await plain.check({ ...object, subject: 'ann' })).toBe(false);
});

test('usersets are asked about exactly, and a version of the model by its number', async () => {
  const { client, sent } = clientWith();
  const object = fresh();
  const team = { namespace: 'group', objectId: object.objectId, relation: 'member' };
  await plain.write([
    { ...team, subject: 'ann' },
    { ...object, subject: 'ann' },
  ]);
  const question = { ...object, subject: team };
  const both = [client.check(question), client.check(question, { exact: true })];
  expect(await Promise.all(both)).toEqual([true, false]);
  expect(sent).toHaveLength(2);
  const unknown = client.check({ ...object, subject: 'ann' }, { modelVersion: 999 });
  await expect(unknown).rejects.toMatchObject({
    code: 'not_found',
    reason: 'MODEL_VERSION_UNKNOWN',
  });
  await expect(
    client.listObjects({ ...object, subject: 'ann' }, { modelVersion: 999 }),
  ).rejects.toMatchObject({ metadata: { field: 'scope.model_version' } });
});

test('every service is there, and fails with its reason', async () => {
  await expect(plain.admin.listProjects({})).rejects.toMatchObject({
    code: 'permission_denied',
    reason: 'ADMIN_SECRET_INVALID',
  });
  const operator = new GatehouseClient({ baseUrl, token, adminSecret: () => instance.adminSecret });
  expect((await operator.admin.listProjects({})).projects.length).toBeGreaterThan(0);
  await expect(plain.workspaces.getWorkspace({ workspaceId: 'x' })).rejects.toBeInstanceOf(
    GatehouseError,
  );
  const stranger = new GatehouseClient({ baseUrl, token: () => Promise.resolve('wrong') });
  await expect(stranger.check({ ...fresh(), subject: 'ann' })).rejects.toMatchObject({
    code: 'unauthenticated',
    reason: 'CREDENTIAL_INVALID',
  });
});

test('HTTP/2 carries the same calls', async () => {
  const client = new GatehouseClient({ baseUrl, token, transport: http2Transport });
  const question = { ...fresh(), subject: 'ann' };
  await client.write([question]);
  expect(await client.check(question)).toBe(true);
});

/** Passes connections on to the service; the first `refused` ones are closed, as a listener at its limit does. */
async function passOn(
  refused: number,
): Promise<{ readonly url: string; readonly cut: () => void }> {
  const { hostname, port } = new URL(baseUrl);
  const open = new Set<net.Socket>();
  let accepted = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined);
    accepted += 1;
    if (accepted <= refused) {
      socket.once('data', () => socket.destroy());
      return;
    }
    const service = net.connect(Number(port), hostname);
    service.on('error', () => undefined);
    socket.pipe(service).pipe(socket);
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      // What it still sends is read: the service sees an end, not a reset, which it would report.
      service.resume();
      service.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`, cut };
}

test('over HTTP/2 a call whose connection is lost is made again', async () => {
  const { url } = await passOn(2);
  const client = new GatehouseClient({ baseUrl: url, token, transport: http2Transport });
  expect(await client.check({ ...fresh(), subject: 'ann' })).toBe(false);
  const never = await passOn(Infinity);
  const lost = new GatehouseClient({ baseUrl: never.url, token, transport: http2Transport });
  await expect(lost.check({ ...fresh(), subject: 'ann' })).rejects.toMatchObject({
    code: 'unavailable',
    reason: '',
  });
});

test('over HTTP/2 a watch goes on over connections that are cut', async () => {
  const { url, cut } = await passOn(0);
  const client = new GatehouseClient({ baseUrl: url, token, transport: http2Transport });
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { kind } of client.watch({ heartbeatSeconds: 1, signal: stop.signal })) {
      if (kind.case !== 'changes') continue;
      for (const { tuple } of kind.value.updates) seen.push(tuple?.objectId ?? '');
    }
  })();
  const written: string[] = [];
  const write = async (): Promise<void> => {
    const tuple = { ...fresh(), subject: 'watched' };
    await plain.write([tuple]);
    written.push(tuple.objectId);
  };
  // It begins where it is when it has come.
  await expect
    .poll(async () => {
      await write();
      return seen.length;
    })
    .toBeGreaterThan(0);
  const first = written.indexOf(seen[0] ?? '');
  for (let n = 0; n < 5; n += 1) {
    cut();
    await write();
    await expect.poll(() => seen).toEqual(written.slice(first));
  }
  stop.abort();
  await watching;
});

test('a watch goes on over connections that break, each event once and in order', async () => {
  let broken = 0;
  let arrived = 0;
  const { client } = clientWith(async (call) => {
    const response = await call();
    const reader = response.body?.getReader();
    let parts = 0;
    // Breaks behind some bytes, as a proxy does that is restarted.
    const body = new ReadableStream({
      async pull(controller) {
        const part = await reader?.read();
        parts += 1;
        arrived += 1;
        if (parts > 3) {
          broken += 1;
          await reader?.cancel();
          controller.error(new TypeError('terminated'));
        } else if (part?.value !== undefined) controller.enqueue(part.value);
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  });
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { kind } of client.watch({ heartbeatSeconds: 1, signal: stop.signal })) {
      if (kind.case !== 'changes') continue;
      for (const { tuple } of kind.value.updates) seen.push(tuple?.objectId ?? '');
    }
  })();
  // The first heartbeat comes at once, and says from where on changes are seen.
  await expect.poll(() => arrived).toBeGreaterThan(0);
  const written: string[] = [];
  for (let n = 0; n < 40; n += 1) {
    const tuple = { ...fresh(), subject: 'watched' };
    written.push(tuple.objectId);
    await plain.write([tuple]);
    await sleep(5);
  }
  await expect.poll(() => seen).toEqual(written);
  expect(broken).toBeGreaterThan(0);
  stop.abort();
  await watching;
});

test('the reasons of the client are those of the service', () => {
  expect([...REASONS]).toEqual(Object.keys(CODE_OF_REASON).toSorted());
});

test('its dependencies are the versions that are tested here', () => {
  const read = (path: string): Record<string, Record<string, string>> =>
    JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string>>;
  const { dependencies = {} } = read('clients/typescript/package.json');
  const own = read('package.json');
  for (const [name, version] of Object.entries(dependencies)) {
    expect(own['dependencies']?.[name] ?? own['devDependencies']?.[name], name).toBe(version);
  }
});

test('a model as a type refuses names that it has not', () => {
  type Drive = { folder: 'owner' | 'viewer'; file: 'viewer' };
  const drive = new GatehouseClient<Drive>({ baseUrl, token });
  const asked = (): unknown => [
    drive.check({ namespace: 'folder', objectId: '1', relation: 'owner', subject: 'ann' }),
    // @ts-expect-error A file has no owner.
    drive.check({ namespace: 'file', objectId: '1', relation: 'owner', subject: 'ann' }),
    // @ts-expect-error No such namespace.
    drive.listObjects({ namespace: 'fil', relation: 'viewer', subject: 'ann' }),
  ];
  expect(asked).toBeTypeOf('function');
});

/** So that the type of an event is used as a caller would. */
export type Seen = WatchEvent['kind']['case'];
