import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packChanges, unpackChanges } from './packed-changes.ts';
import type { Subject, TupleChange } from './relation-tuple.ts';

const text = fc.string({ minLength: 1, unit: 'grapheme' });
const subject: fc.Arbitrary<Subject> = fc.oneof(
  text.map((userId) => ({ kind: 'user', userId }) as const),
  fc.constant({ kind: 'wildcard' } as const),
  fc
    .tuple(fc.constantFrom('group', 'doc'), text, fc.constantFrom('', 'member'))
    .map(
      ([namespace, objectId, relation]) =>
        ({ kind: 'set', namespace, objectId, relation }) as const,
    ),
);
const key = fc.record({ namespace: text, objectId: text, relation: text, subject });
const change: fc.Arbitrary<TupleChange> = fc.oneof(
  key.map((tuple) => ({ op: 'delete', tuple }) as const),
  fc
    .tuple(key, fc.option(fc.bigInt(-(2n ** 62n), 2n ** 62n)), fc.option(fc.tuple(text, text)))
    .map(([tuple, expiresAtUs, condition]) => ({
      op: 'insert' as const,
      tuple: {
        ...tuple,
        ...(expiresAtUs === null ? {} : { expiresAtUs }),
        ...(condition === null
          ? {}
          : { conditionName: condition[0], conditionParams: condition[1] }),
      },
    })),
);

test('changes come back as they were packed', () => {
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      expect(unpackChanges(packChanges(changes))).toEqual(changes);
    }),
  );
});

test('the packed form is the one of the migration', () => {
  const tuple = {
    namespace: 'n',
    objectId: 'o',
    relation: 'r',
    subject: { kind: 'wildcard' },
  } as const;
  const changes = [
    { op: 'insert', tuple: { ...tuple, expiresAtUs: 5n } },
    { op: 'delete', tuple: { ...tuple, expiresAtUs: 5n } },
  ] as const;
  expect(packChanges(changes)).toBe(
    '[[1,"n","o","r","*","","","5",null,null],[2,"n","o","r","*","","",null,null,null]]',
  );
});
