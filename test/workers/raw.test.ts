import { expect, test } from 'vitest';
import { askRaw, scopeOf, startFixture, viewer } from './pool-fixture.ts';

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
