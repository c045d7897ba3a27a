import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEntityLookups } from '../model/tuple-reader.ts';
import { TupleIndex } from './tuple-index.ts';

const NAMESPACES = ['doc', 'folder', ''];

function insert(index: TupleIndex, objectId: string, userId: string): void {
  index.applyChange('insert', {
    namespace: NAMESPACES[objectId.length % 2] ?? 'doc',
    objectId,
    relation: 'viewer',
    subject: { kind: 'user', userId },
  });
}

test('ids looked up together are those looked up one by one', () => {
  const id = fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
    fc.stringMatching(/^[a-c]{1,9}$/),
    fc.integer({ min: 0, max: 60 }).map((n) => `d${n}`),
  );
  const asked = fc.record({ id, namespace: fc.constantFrom(...NAMESPACES, 'unknown') });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(id, id), { maxLength: 80, size: 'max' }),
      fc.array(asked, { maxLength: 100, size: 'max' }),
      (stored, questions) => {
        const index = new TupleIndex();
        for (const [objectId, userId] of stored) insert(index, objectId, userId);
        const lookups = createEntityLookups(100);
        let text = Buffer.from('before');
        for (const [i, question] of questions.entries()) {
          lookups.namespaces[i] = index.nameId(question.namespace);
          lookups.starts[i] = text.length;
          text = Buffer.concat([text, Buffer.from(question.id)]);
          lookups.ends[i] = text.length;
        }
        index.readEntityIds(text, lookups, questions.length);
        for (const [i, { namespace, id: asText }] of questions.entries()) {
          const name = index.nameId(namespace);
          expect(lookups.entities[i]).toBe(name < 0 ? 0 : index.entityId(name, asText));
        }
      },
    ),
  );
});

test('the node of a user is the one that its entity has', () => {
  const index = new TupleIndex();
  for (let n = 0; n < 200; n++) insert(index, `d${n}`, `u${n % 70}`);
  for (let n = 0; n < 80; n++) {
    const entity = index.entityId(0, `u${n}`);
    expect(index.userNodeOf(entity)).toBe(entity === 0 ? 0 : index.nodeId(entity, 0));
  }
});

test('an id longer than any that is stored is not found', () => {
  const index = new TupleIndex();
  insert(index, 'd1', 'u1');
  const lookups = createEntityLookups(1);
  lookups.namespaces[0] =
    index.nameId('folder') >= 0 ? index.nameId('folder') : index.nameId('doc');
  lookups.ends[0] = 70_000;
  index.readEntityIds(Buffer.alloc(70_000, 'a'), lookups, 1);
  expect(lookups.entities[0]).toBe(0);
});
