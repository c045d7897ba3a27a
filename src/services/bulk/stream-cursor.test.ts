import { expect, test } from 'vitest';
import { StreamCursors } from './stream-cursor.ts';

/* Callers keep cursors: those of the releases before must stay good. */
test('a cursor looks as it always did', () => {
  const match = { namespace: 'doc', objectId: null, relation: null, subject: null };
  const scope = { projectId: 'p', tenantId: null, match };
  const position = { tenantId: 't', epoch: 3, revision: 14, key: null };
  const cursors = new StreamCursors(Buffer.alloc(32, 7));
  const cursor = 'WzEsInQiLDMsMTRd.Gsg3y1QzsSmF55c-';
  expect(cursors.encode(scope, position)).toBe(cursor);
  expect(cursors.decode(scope, cursor)).toEqual(position);
});
