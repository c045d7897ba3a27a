import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { call } from '../support/service.ts';
import { sharedInstance } from '../support/shared-instance.ts';

/*
 * Writes by the hot path and by the general path: the same requests, valid and broken, go down both, each into a tenant of its
 * own, and answers, errors and what is stored afterwards are compared.
 */
const instance = await sharedInstance();
const project_id = instance.projectId;

type Answer = { readonly status: number; readonly type: string | null; readonly body: unknown };

async function send(
  baseUrl: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(`${baseUrl}/workspace.v1.AuthzService/WriteRelationTuples`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-request-id': 'the-same',
      ...headers,
    },
    body,
  });
  const answer = (await response.json()) as Record<string, unknown>;
  expect(response.headers.get('x-request-id')).toBe('the-same');
  // Tokens name the tenant, which differs.
  if (typeof answer['consistency_token'] === 'string') answer['consistency_token'] = 'a token';
  return { status: response.status, type: response.headers.get('content-type'), body: answer };
}

async function stored(tenantId: string): Promise<unknown> {
  const answer = await call(instance, 'AuthzService/ReadRelationTuples', { tenant_id: tenantId });
  const tuples = answer.body['tuples'] as { tenant_id?: string }[];
  for (const tuple of tuples) delete tuple.tenant_id;
  return tuples;
}

const name = fc.constantFrom('doc', 'viewer', 'seat', '', 'Doc', 'x'.repeat(65));
const id = fc.constantFrom(
  'd1',
  'd2',
  'zoë',
  '"quoted"',
  'a#b',
  '',
  'y'.repeat(256),
  'y'.repeat(257),
);
const subject = fc.oneof(
  fc.record({ user_id: id }),
  fc.record({ set: fc.record({ namespace: name, objectId: id, relation: name }) }),
  fc.constantFrom({ wildcard: true }, { wildcard: false }, {}),
  fc.record({ wildcard_of: name }),
  fc.record({ wildcardOf: id }),
);
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
const update = fc.record(
  {
    op: fc.constantFrom('OP_INSERT', 'OP_INSERT', 'OP_DELETE', 'OP_OTHER'),
    tuple: fc.record(
      {
        namespace: mostly('doc', name),
        object_id: mostly('d1', id),
        relation: mostly('viewer', name),
        subject: mostly<object>({ user_id: 'ann' }, subject),
        tenant_id: mostly('', fc.constant('another')),
        condition_name: mostly('', fc.constant('age_at_least')),
        expires_at: fc.constantFrom('2090-01-01T00:00:00Z'),
      },
      { requiredKeys: ['namespace', 'object_id', 'relation', 'subject'] },
    ),
  },
  { requiredKeys: ['op', 'tuple'] },
);

describe('WriteRelationTuples by the hot and by the general path', () => {
  test('answer alike, and leave the same', async () => {
    let run = 0;
    let written = 0;
    const property = fc.asyncProperty(
      fc.array(fc.array(update, { maxLength: 3 }), { minLength: 1, maxLength: 4 }),
      async (requests) => {
        run++;
        const tenants = [`hot-${run}`, `general-${run}`];
        for (const updates of requests) {
          const [hot, general] = [
            await send(
              instance.baseUrl,
              JSON.stringify({ project_id, tenant_id: tenants[0], updates }),
            ),
            await send(
              instance.generalUrl,
              JSON.stringify({ project_id, tenant_id: tenants[1], updates }),
            ),
          ];
          expect(hot).toEqual(general);
          if (hot.status === 200) written++;
        }
        expect(await stored(`hot-${run}`)).toEqual(await stored(`general-${run}`));
      },
    );
    await fc.assert(property, { numRuns: 60 });
    expect(written).toBeGreaterThan(10);
  }, 120_000);

  test.each([
    ['no credential', {}, { authorization: '' }],
    ['another version', {}, { 'connect-protocol-version': '2' }],
    ['an unknown project', { project_id: 'nowhere' }, {}],
    ['a bad tenant', { tenant_id: 'a b' }, {}],
    ['a deadline that is over', {}, { 'connect-timeout-ms': 'soon' }],
    ['another content type', {}, { 'content-type': 'application/json; charset=utf-8' }],
    [
      'an answer that may be compressed',
      { tenant_id: 'z'.repeat(2_000) },
      { 'accept-encoding': 'gzip' },
    ],
  ])('%s', async (_, fields, headers) => {
    const tuple = {
      namespace: 'doc',
      object_id: 'd',
      relation: 'viewer',
      subject: { user_id: 'u' },
    };
    const body = JSON.stringify({ project_id, updates: [{ op: 'OP_INSERT', tuple }], ...fields });
    expect(await send(instance.baseUrl, body, headers)).toEqual(
      await send(instance.generalUrl, body, headers),
    );
  });

  test('what was written once is expected to be new, and written again all the same', async () => {
    const tuple = {
      namespace: 'doc',
      object_id: 'd',
      relation: 'viewer',
      subject: { user_id: 'u' },
    };
    const insert = (objectId: string): object => ({
      op: 'OP_INSERT',
      tuple: { ...tuple, object_id: objectId },
    });
    const write = async (...ids: readonly string[]): Promise<Answer> =>
      send(
        instance.baseUrl,
        JSON.stringify({ project_id, tenant_id: 'again', updates: ids.map(insert) }),
      );
    expect((await write('a')).status).toBe(200);
    expect((await write('b', 'a', 'c')).status).toBe(200);
    expect((await write('d')).status).toBe(200);
    const found = (await stored('again')) as { object_id: string }[];
    expect(found.map(({ object_id: objectId }) => objectId)).toEqual(['a', 'b', 'c', 'd']);
  });
});
