import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SignedCursors } from './signed-cursor.ts';

const key = Buffer.alloc(32, 7);
const kind = { domain: 'one', charactersMax: 1_000 };
const cursors = new SignedCursors(key, kind);

test('what was signed comes back, and nothing else does', () => {
  const fields = fc.array(fc.oneof(fc.string(), fc.nat(), fc.constant(null)), { maxLength: 8 });
  fc.assert(
    fc.property(fields, fc.string(), fc.string(), fc.nat(), (values, scope, other, at) => {
      const cursor = cursors.encode(scope, values);
      fc.pre(cursor.length <= kind.charactersMax);
      expect(cursors.decode(scope, cursor)).toEqual(values);
      if (other !== scope) expect(cursors.decode(other, cursor)).toBeUndefined();
      const place = at % cursor.length;
      const changed = `${cursor.slice(0, place)}~${cursor.slice(place + 1)}`;
      expect(cursors.decode(scope, changed)).toBeUndefined();
      expect(cursors.decode(scope, cursor.slice(0, -1))).toBeUndefined();
      const elsewhere = new SignedCursors(key, { ...kind, domain: 'two' });
      expect(elsewhere.decode(scope, cursor)).toBeUndefined();
      expect(new SignedCursors(Buffer.alloc(32, 8), kind).decode(scope, cursor)).toBeUndefined();
    }),
  );
});

test('one that is too long is not looked at', () => {
  const long = cursors.encode('', ['x'.repeat(1_000)]);
  expect(cursors.decode('', long)).toBeUndefined();
});
