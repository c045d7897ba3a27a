import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Instance } from '../support/instance.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { threeInstances } from '../support/three-instances.ts';
import {
  anyTuple,
  authzOver,
  exported,
  getLines,
  type JsonTuple,
  linesOf,
  plainTuples,
  postLines,
  setOf,
  textOf,
  tuplesOver,
} from './support.ts';

/* What is stored is what is exported, whatever came in by an import, over every protocol and on three instances. */

const three = threeInstances();

let tenants = 0;
const newTenant = (): string => `t${String(++tenants)}`;

async function allows(instance: Instance, tenantId: string, tuple: JsonTuple): Promise<boolean> {
  if (!('user_id' in tuple.subject)) throw new Error('a user');
  const { allowed } = await authzOver(instance).check({
    tenantId,
    namespace: tuple.namespace,
    objectId: tuple.object_id,
    relation: tuple.relation,
    subjectUserId: tuple.subject.user_id,
  });
  return allowed;
}

async function write(
  instance: Instance,
  tenantId: string,
  tuples: readonly JsonTuple[],
): Promise<string> {
  const response = await fetch(
    `${instance.baseUrl}/workspace.v1.AuthzService/WriteRelationTuples`,
    {
      method: 'POST',
      headers: {
        authorization: `Bearer ${instance.token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        tenant_id: tenantId,
        updates: tuples.map((tuple) => ({ op: 'OP_INSERT', tuple })),
      }),
    },
  );
  expect(response.status, await response.clone().text()).toBe(200);
  return ((await response.json()) as { consistency_token: string }).consistency_token;
}

inShort(describe)('an import into an empty tenant', () => {
  test('is one change that every instance sees, though it had the tenant in memory', async () => {
    const tenantId = newTenant();
    // More than one part of an import.
    const tuples = plainTuples(9_000);
    const [first, last] = [tuples[0] as JsonTuple, tuples.at(-1) as JsonTuple];
    for (const one of three.instances) expect(await allows(one, tenantId, last)).toBe(false);
    const done = await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(tuples));
    expect(done).toMatchObject({
      status: 200,
      body: { received: '9000', written: '9000', unchanged: '0', resumed_at: '0' },
    });
    for (const one of three.instances) {
      expect(await allows(one, tenantId, first)).toBe(true);
      expect(await allows(one, tenantId, last)).toBe(true);
    }
    // What comes later is a change as ever.
    const added = plainTuples(1, 30_000);
    await write(three.instances[1], tenantId, added);
    for (const one of three.instances)
      expect(await allows(one, tenantId, added[0] as JsonTuple)).toBe(true);
    const stored = await exported(three.instances[2], `?tenant_id=${tenantId}`);
    expect(stored.map(textOf).toSorted()).toEqual(setOf(tuples, added));
    const { rows } = await three.database.pool.query(
      `select seq::text, retained_from::text from shard where tenant_id = $1`,
      [tenantId],
    );
    expect(rows).toEqual([{ seq: '3', retained_from: '2' }]);
  });

  test('of a tenant that held tuples once goes beyond what every instance has of it', async () => {
    const tenantId = newTenant();
    const [old] = plainTuples(1, 777_777) as [JsonTuple];
    await write(three.instances[0], tenantId, [old]);
    for (const one of three.instances) expect(await allows(one, tenantId, old)).toBe(true);
    const gone = await tuplesOver(three.instances[1]).deleteTuples({
      tenantId,
      filter: { namespace: 'doc' },
      wholeNamespace: true,
    });
    expect(gone.count).toBe(1n);
    for (const one of three.instances) expect(await allows(one, tenantId, old)).toBe(false);
    const tuples = plainTuples(50);
    await postLines(three.instances[2], `?tenant_id=${tenantId}`, linesOf(tuples));
    for (const one of three.instances) {
      expect(await allows(one, tenantId, tuples[7] as JsonTuple)).toBe(true);
      expect(await allows(one, tenantId, old)).toBe(false);
    }
  });
});

test('a round trip keeps every tuple, over lines and over each protocol', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyTuple, { maxLength: 60 }),
      fc.array(anyTuple, { maxLength: 60 }),
      fc.nat(2),
      fc.constantFrom('connect-json' as const, 'connect' as const, 'grpc' as const),
      async (before, tuples, at, wire) => {
        const tenantId = newTenant();
        const instance = three.instances[at] as Instance;
        const query = `?tenant_id=${tenantId}`;
        if (before.length > 0) {
          const first = await postLines(instance, query, linesOf(before));
          expect(first.status, JSON.stringify(first.body)).toBe(200);
        }
        const { status, body } = await postLines(instance, query, linesOf(tuples));
        expect(status, JSON.stringify(body)).toBe(200);
        expect(body['received']).toBe(String(tuples.length));
        expect(Number(body['written']) + Number(body['unchanged'])).toBe(tuples.length);
        const expected = setOf(before, tuples);
        for (const one of three.instances) {
          const stored = await exported(one, query);
          expect(stored.map(textOf).toSorted()).toEqual(expected);
        }
        const streamed: string[] = [];
        const other = newTenant();
        const parts = tuplesOver(instance, wire).streamTuples({ tenantId });
        const copied = await tuplesOver(instance, wire).importTuples(
          (async function* copy() {
            yield { options: { tenantId: other } };
            for await (const part of parts) {
              for (const tuple of part.tuples) {
                expect(tuple.tenantId).toBe(tenantId);
                expect(tuple.projectId).toBe('default');
                streamed.push(tuple.objectId);
                tuple.tenantId = '';
              }
              yield { tuples: part.tuples };
            }
          })(),
        );
        expect(streamed).toHaveLength(expected.length);
        expect(copied.written).toBe(BigInt(expected.length));
        const copy = await exported(instance, `?tenant_id=${other}`);
        expect(copy.map(textOf).toSorted()).toEqual(expected);
      },
    ),
    { numRuns: byLength(4, 40) },
  );
}, 120_000);

test('a filter takes exactly what it says', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyTuple, { minLength: 1, maxLength: 80 }),
      fc.record({
        namespace: fc.boolean(),
        object: fc.boolean(),
        relation: fc.boolean(),
        subject: fc.boolean(),
      }),
      async (tuples, by) => {
        const tenantId = newTenant();
        await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(tuples));
        const like = tuples[0] as JsonTuple;
        const query = new URLSearchParams({ tenant_id: tenantId });
        if (by.namespace || by.object) query.set('namespace', like.namespace);
        if (by.object) query.set('object_id', like.object_id);
        if (by.relation) query.set('relation', like.relation);
        if (by.subject) {
          if ('user_id' in like.subject) query.set('subject_user_id', like.subject.user_id);
          else if ('wildcard' in like.subject) query.set('subject_wildcard', 'true');
          else if ('wildcard_of' in like.subject)
            query.set('subject_wildcard_of', like.subject.wildcard_of);
          else {
            query.set('subject_namespace', like.subject.set.namespace);
            query.set('subject_object_id', like.subject.set.object_id);
            query.set('subject_relation', like.subject.set.relation);
          }
        }
        const taken = (tuple: JsonTuple): boolean =>
          (!(by.namespace || by.object) || tuple.namespace === like.namespace) &&
          (!by.object || tuple.object_id === like.object_id) &&
          (!by.relation || tuple.relation === like.relation) &&
          (!by.subject || JSON.stringify(tuple.subject) === JSON.stringify(like.subject));
        const stored = await exported(three.instances[1], `?tenant_id=${tenantId}`);
        const found = await exported(three.instances[2], `?${query.toString()}`);
        expect(found).toEqual(stored.filter(taken));
      },
    ),
    { numRuns: byLength(5, 60) },
  );
}, 120_000);

inShort(test)(
  'an export goes on behind its cursor on another instance, and says whether the tenant has changed',
  async () => {
    const tenantId = newTenant();
    const tuples = plainTuples(1_500);
    await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(tuples));
    const { lines } = await getLines(three.instances[0], `?tenant_id=${tenantId}`);
    const first = lines.findIndex((line) => 'revision_changed' in line);
    const cursor = String(lines[first]?.['cursor']);
    const head = lines.slice(1, first).map((line) => textOf(line['tuple'] as JsonTuple));
    expect(head.length).toBeLessThan(1_500);
    const query = `?tenant_id=${tenantId}&cursor=${encodeURIComponent(cursor)}`;
    const rest = await getLines(three.instances[1], query);
    const marks = rest.lines.filter((line) => 'revision_changed' in line);
    expect(marks.map((line) => line['revision_changed'])).toEqual(marks.map(() => false));
    const tail = rest.lines.flatMap((line) =>
      'tuple' in line ? [textOf(line['tuple'] as JsonTuple)] : [],
    );
    expect([...head, ...tail].toSorted()).toEqual(setOf(tuples));
    await write(three.instances[2], tenantId, plainTuples(1, 5_000));
    const later = await getLines(three.instances[1], query);
    expect(later.lines.find((line) => 'revision_changed' in line)?.['revision_changed']).toBe(true);
    const foreign = await getLines(
      three.instances[1],
      `?tenant_id=other&cursor=${encodeURIComponent(cursor)}`,
    );
    expect(foreign.status).toBe(400);
  },
);

inShort(test)('an export of a project has all of its tenants, in order', async () => {
  const made = ['a', 'b', 'c'].map((name) => `all-${name}`);
  const project = `p-${Date.now()}`;
  const created = await fetch(
    `${three.instances[0].baseUrl}/workspace.v1.AdminService/CreateProject`,
    {
      method: 'POST',
      headers: {
        authorization: `Bearer ${three.instances[0].token}`,
        'x-admin-secret': three.instances[0].adminSecret,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ id: project, name: 'P' }),
    },
  );
  expect(created.status).toBe(200);
  for (const [n, tenant] of made.entries()) {
    const query = `?project_id=${project}&tenant_id=${tenant}`;
    const done = await postLines(
      three.instances[n] as Instance,
      query,
      linesOf(plainTuples(700, n)),
    );
    expect(done.status, JSON.stringify(done.body)).toBe(200);
  }
  const query = `?project_id=${project}&all_tenants=true`;
  const { lines } = await getLines(three.instances[1], query);
  const seen = lines.flatMap((line) =>
    'tuple' in line ? [(line['tuple'] as { tenant_id: string }).tenant_id] : [],
  );
  expect(seen).toEqual(made.flatMap((tenant) => Array.from({ length: 700 }, () => tenant)));
  const marks = lines.filter((line) => 'revision_changed' in line);
  for (const mark of marks) {
    const at = lines.indexOf(mark);
    const before = lines.slice(0, at).filter((line) => 'tuple' in line).length;
    const cursor = encodeURIComponent(String(mark['cursor']));
    const rest = await exported(three.instances[2], `${query}&cursor=${cursor}`);
    expect(rest).toHaveLength(2_100 - before);
  }
});

// The last one: instances serve a new history, which they agree on once their leases have ended.
inShort(test)(
  'an export refuses a token of history that was lost, also where it was known',
  async () => {
    const tenantId = newTenant();
    const [kept, lost] = plainTuples(2) as [JsonTuple, JsonTuple];
    await write(three.instances[0], tenantId, [kept]);
    const token = await write(three.instances[0], tenantId, [lost]);
    const query = `?tenant_id=${tenantId}&at_least_consistency_token=${encodeURIComponent(token)}`;
    expect(await exported(three.instances[0], query)).toHaveLength(2);
    // From now on it remembers how far the tenant had come.
    expect(await allows(three.instances[0], tenantId, lost)).toBe(true);
    // As on a standby that lacked the last write, which serves now.
    await three.database.pool.query(
      `delete from relation_tuple where tenant_id = $1 and object_id = $2`,
      [tenantId, lost.object_id],
    );
    await three.database.pool.query(`update shard set seq = seq - 1 where tenant_id = $1`, [
      tenantId,
    ]);
    expect((await getLines(three.instances[0], query)).status).toBe(400);
    expect(await exported(three.instances[0], `?tenant_id=${tenantId}`)).toHaveLength(1);
  },
);
