import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { canonicalJson } from '../../src/model/canonical-json.ts';
import type { TupleChange } from '../../src/model/relation-tuple.ts';
import { askCheck, askRaw, scopeOf, startFixture, viewer } from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: '' };
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

test('check, batch and list in JSON', async () => {
  await using fixture = await startFixture();
  const { pool, source } = fixture;
  source.commit(SHARD, [viewer('insert', 'a', 'u'), viewer('insert', 'ü"\\b', 'u')]);
  const scope = scopeOf(SHARD, 1);
  const check = (objectId: string): string =>
    JSON.stringify({
      namespace: 'doc',
      object_id: objectId,
      relation: 'viewer',
      subject_user_id: 'u',
    });
  expect(await askRaw(pool, scope, 'check', check('a'))).toEqual({ kind: 'allowed' });
  expect(await askRaw(pool, scope, 'check', check('b'))).toEqual({ kind: 'denied' });
  const items = ['a', 'b', 'a'].map((id) => JSON.parse(check(id)) as object);
  const batch = await askRaw(pool, scope, 'batchCheck', JSON.stringify({ items }));
  expect(batch.kind === 'body' && text(batch.body)).toBe(
    '{"results":[{"allowed":true,"error":""},{"allowed":false,"error":""},{"allowed":true,"error":""}]}',
  );
  const list = await askRaw(
    pool,
    scope,
    'listObjects',
    '{"namespace":"doc","relation":"viewer","subjectUserId":"u"}',
  );
  expect(list.kind === 'body' && text(list.body)).toBe('{"object_ids":["a","ü\\"\\\\b"]}');
});

test('a check with a context says what a parsed one says, in JSON and in binary', async () => {
  const modelJson = JSON.stringify({
    schema_version: 1,
    conditions: {
      listed: {
        parameters: { allowed: 'map<bool>', region: 'string' },
        expression: 'allowed.exists(name, name == region && allowed[name])',
      },
    },
    namespaces: {
      doc: {
        relations: {
          viewer: {},
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
        },
      },
    },
  });
  await using fixture = await startFixture({ modelJson });
  const { pool, source } = fixture;
  const adult = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
  const listed = { conditionName: 'listed', conditionParams: '{"region":"eu"}' };
  const grant = (objectId: string, relation: string, payload: object): TupleChange => {
    const { op, tuple } = viewer('insert', objectId, 'u');
    return { op, tuple: { ...tuple, relation, ...payload } };
  };
  source.commit(SHARD, [
    grant('plain', 'viewer', {}),
    grant('adult', 'viewer', adult),
    grant('listed', 'viewer', listed),
    grant('banned', 'viewer', {}),
    grant('banned', 'banned', adult),
  ]);
  const scope = scopeOf(SHARD, 1);
  const seen = new Map<string, number>();
  for (const context of [
    undefined,
    {},
    { age: 30 },
    { age: 17 },
    { age: '30' },
    { allowed: { us: true, eu: true } },
    { allowed: { eu: false, '10': true, '9': null } },
    { age: -1.5, allowed: [], note: 'zoë' },
  ]) {
    for (const objectId of ['plain', 'adult', 'listed', 'banned', 'none']) {
      for (const relation of ['viewer', 'reader']) {
        const message = { namespace: 'doc', objectId, relation, subjectUserId: 'u' };
        const asked = context === undefined ? message : { ...message, context };
        const query = {
          namespace: 'doc',
          objectId,
          relation,
          subject: { kind: 'user', userId: 'u' } as const,
          contextJson: context === undefined ? '' : canonicalJson(context),
        };
        const wanted = { kind: (await askCheck(pool, scope, query)) ? 'allowed' : 'denied' };
        const question = JSON.stringify(asked);
        expect(await askRaw(pool, scope, 'check', question), question).toEqual(wanted);
        const request = create(
          CheckRequestSchema,
          asked as MessageInitShape<typeof CheckRequestSchema>,
        );
        const bytes = toBinary(CheckRequestSchema, request);
        expect(await askRaw(pool, scope, 'check', bytes), question).toEqual(wanted);
        const key = `${objectId} ${relation} ${wanted.kind}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
    }
  }
  expect(seen.get('plain viewer allowed')).toBe(8);
  expect(seen.get('adult viewer allowed')).toBe(1);
  expect(seen.get('listed viewer allowed')).toBe(1);
  // A ban that cannot be decided is one.
  expect(seen.get('banned reader denied')).toBe(6);
});
