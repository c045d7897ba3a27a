import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { EntityOrder } from '../../src/engine/general/entity-order.ts';
import { compareUtf8 } from '../../src/shared/text/utf8-order.ts';
import { ListEncoder } from '../../src/workers/raw/answer-encoder.ts';

/** An index with an object of each id, and their entities in the order given. */
function indexOf(ids: readonly string[]): { index: TupleIndex; entities: Uint32Array } {
  const index = new TupleIndex();
  for (const objectId of ids) {
    const subject = { kind: 'user', userId: 'u' } as const;
    index.applyChange('insert', { namespace: 'doc', objectId, relation: 'viewer', subject });
  }
  const namespace = index.nameId('doc');
  return { index, entities: Uint32Array.from(ids, (id) => index.entityId(namespace, id)) };
}

function ordered(ids: readonly string[]): string[] {
  const { index, entities } = indexOf(ids);
  const order = new EntityOrder(index, entities);
  while (order.step());
  return Array.from(order.values, (entity) => index.entityText(entity));
}

const id = fc
  .tuple(
    fc.constantFrom('', 'd', 'document-', 'document-2026-', 'ü', '𝄞'),
    fc.string({
      unit: fc.constantFrom('a', 'b', '1', '"', '\\', 'é', '\uffee', '𝄞'),
      maxLength: 12,
    }),
  )
  .map((parts) => parts.join(''))
  .filter((text) => text !== '');

describe('EntityOrder', () => {
  test('is the order of the bytes of the ids', () => {
    const property = fc.property(fc.uniqueArray(id, { maxLength: 300 }), (ids) => {
      expect(ordered(ids)).toEqual(ids.toSorted(compareUtf8));
    });
    fc.assert(property, { numRuns: 300 });
  });

  test.each([
    ['that the keys tell apart', (i: number) => `doc-${(i * 7_919) % 100_003}`],
    ['of which all have the same key', (i: number) => `${i % 2}same-${(i * 7_919) % 100_003}`],
    [
      'with the bytes of one beginning another',
      (i: number) => 'x'.repeat((i % 250) + 1) + (i >> 8),
    ],
  ])('puts 20,000 in order %s', (_, idAt) => {
    const ids = Array.from({ length: 20_000 }, (__, i) => idAt(i));
    const distinct = [...new Set(ids)];
    expect(ordered(distinct)).toEqual(distinct.toSorted(compareUtf8));
  });
});

describe('ListEncoder', () => {
  const encoded = (ids: readonly string[], isJson: boolean, isLarge: boolean): Uint8Array => {
    const { index, entities } = indexOf(ids);
    const encoder = new ListEncoder(index, entities, isJson);
    // In slices that end at once.
    while (encoder.run(0) === 'more');
    return encoder.body(() => isLarge).slice();
  };

  test('writes what JSON.stringify writes, whatever the ids', () => {
    const property = fc.property(
      fc.uniqueArray(id, { maxLength: 300 }),
      fc.boolean(),
      (ids, isLarge) => {
        const text = Buffer.from(encoded(ids, true, isLarge)).toString();
        expect(text).toBe(JSON.stringify({ object_ids: ids }));
      },
    );
    fc.assert(property, { numRuns: 200 });
  });

  test('writes a field for each id, of one and of two bytes of length', () => {
    const ids = ['a', 'b'.repeat(127), 'c'.repeat(128), 'é'.repeat(128)];
    const bytes = Buffer.from(encoded(ids, false, false));
    const found: string[] = [];
    for (let at = 0; at < bytes.length;) {
      expect(bytes[at++]).toBe(0x0a);
      let length = bytes[at++] as number;
      if (length >= 0x80) length = (length & 0x7f) | ((bytes[at++] as number) << 7);
      found.push(bytes.toString('utf8', at, at + length));
      at += length;
    }
    expect(found).toEqual(ids);
  });

  test('a body of its own is not written over by the next one', () => {
    const { index, entities } = indexOf(['a', 'b']);
    const first = new ListEncoder(index, entities, true);
    first.run(Infinity);
    const body = first.body(() => true);
    const second = new ListEncoder(index, entities.slice(1), true);
    second.run(Infinity);
    expect(Buffer.from(body).toString()).toBe('{"object_ids":["a","b"]}');
  });
});
