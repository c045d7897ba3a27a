import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEntityLookups } from '../model/tuple-reader.ts';
import { hashBytes } from './tables/text-scratch.ts';
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

test('an id with the hash of another is not taken for it', () => {
  const index = new TupleIndex();
  index.pinName('doc');
  const namespace = index.nameId('doc');
  // Of 150,000 ids of two words some have the hash of another: the birthday paradox.
  const byHash = new Map<number, string>();
  const pairs: [string, string][] = [];
  for (let i = 0; pairs.length < 2; i++) {
    const n = Math.imul(i, 0x9e37_79b1) >>> 0;
    const id = `${n.toString(36).padStart(7, '_')}${i.toString(36).slice(-1)}`;
    const bytes = Buffer.from(id);
    const hash = hashBytes(bytes, 0, bytes.length, namespace);
    const other = byHash.get(hash);
    if (other === undefined) byHash.set(hash, id);
    else if (other !== id) pairs.push([other, id]);
  }
  const ask = (id: string): number => {
    const lookups = createEntityLookups(1);
    lookups.namespaces[0] = namespace;
    lookups.ends[0] = Buffer.byteLength(id);
    index.readEntityIds(Buffer.from(id), lookups, 1);
    return lookups.entities[0] as number;
  };
  const tuple = (objectId: string) =>
    ({
      namespace: 'doc',
      objectId,
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
    }) as const;
  for (const [one, other] of pairs) {
    index.applyChange('insert', tuple(one));
    expect(ask(other)).toBe(0);
    expect(index.entityText(ask(one))).toBe(one);
    index.applyChange('insert', tuple(other));
    expect([ask(one), ask(other)].map((entity) => index.entityText(entity))).toEqual([one, other]);
    index.applyChange('delete', tuple(one));
    expect([ask(one), index.entityText(ask(other))]).toEqual([0, other]);
  }
});

test('as many ids are looked up as are asked for, and no other answer is touched', () => {
  const index = new TupleIndex();
  const text = Buffer.from('d1u1');
  insert(index, 'd1', 'u1');
  for (const count of [0, 1, 31, 32, 33, 64, 65]) {
    const lookups = createEntityLookups(100);
    lookups.starts.fill(2);
    lookups.ends.fill(4);
    lookups.entities.fill(7);
    index.readEntityIds(text, lookups, count);
    const user = index.entityId(0, 'u1');
    expect(user).toBeGreaterThan(7);
    expect([...lookups.entities]).toEqual(
      Array.from({ length: 100 }, (_, i) => (i < count ? user : 7)),
    );
  }
});
