import { expect, test } from 'vitest';
import { WatchCursors } from './watch-cursor.ts';

/* Callers keep cursors: those of the releases before must stay good. */
test('a cursor looks as it always did', () => {
  const cursors = new WatchCursors(Buffer.alloc(32, 7));
  const position = { kind: 'shard', epoch: 3, revision: 14, modelVersion: 2 } as const;
  const cursor = 'WzEsMywxNCwyXQ.k0NSHE_oQBo_7CQ-';
  expect(cursors.encode('p', 't', position)).toBe(cursor);
  expect(cursors.decode('p', 't', cursor)).toEqual(position);
});
