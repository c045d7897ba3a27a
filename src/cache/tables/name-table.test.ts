import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Dictionary } from './dictionary.ts';
import { NameTable } from './name-table.ts';
import { PageAllocator } from './page-allocator.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);

function start(): { allocator: PageAllocator; dictionary: Dictionary; names: NameTable } {
  const allocator = new PageAllocator(2 ** 27);
  const dictionary = new Dictionary(allocator);
  return { allocator, dictionary, names: new NameTable(dictionary, allocator) };
}

/** Names that are short, long, of one letter, and many of one length with one first and last letter. */
const nameArb = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'é', 'viewer', 'parent', 'member'),
  fc.integer({ min: 0, max: 30 }).map((n) => `x${n % 10}${Math.floor(n / 10)}y`),
  fc.integer({ min: 0, max: 40 }).map((n) => String.fromCharCode(97 + (n % 26)).repeat(n % 7)),
);

test('names keep their ids while anything mentions them, and are unknown then', () => {
  const step = fc.tuple(
    fc.constantFrom('mention', 'mentionBytes', 'release', 'release', 'pin', 'find'),
    nameArb,
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const { dictionary, names } = start();
      const model = new Map<string, { id: number; mentions: number; pinned: boolean }>();
      let most = 0;
      for (const [what, name] of steps) {
        const bytes = Buffer.from(`<${name}>`);
        const known = model.get(name);
        if (what === 'release') {
          if (known === undefined || known.mentions === 0) continue;
          known.mentions -= 1;
          names.release(known.id);
          if (known.mentions === 0 && !known.pinned) model.delete(name);
        } else if (what !== 'find') {
          const id =
            what === 'mentionBytes'
              ? names.internBytes(bytes, 1, bytes.length - 1)
              : what === 'pin'
                ? names.pin(name)
                : names.intern(name);
          if (name === '') {
            expect(id).toBe(0);
            names.retain(id);
            names.release(id);
            continue;
          }
          const entry = known ?? { id, mentions: 0, pinned: false };
          expect(id).toBe(entry.id);
          if (what === 'pin') entry.pinned = true;
          else {
            names.retain(id);
            entry.mentions += 1;
          }
          model.set(name, entry);
        }
        most = Math.max(most, model.size);
        const now = name === '' ? 0 : (model.get(name)?.id ?? -1);
        expect(names.idOf(name)).toBe(now);
        expect(names.findBytes(bytes, 1, bytes.length - 1)).toBe(now);
      }
      for (const [name, { id, mentions, pinned }] of model) {
        expect(names.idOf(name)).toBe(id);
        expect(names.text(id)).toBe(name);
        expect(names.mentions(id)).toBe(mentions);
        expect(names.isPinned(id)).toBe(pinned);
      }
      expect(new Set([...model.values()].map(({ id }) => id)).size).toBe(model.size);
      // Ids are dense: those of names that went come back.
      expect(names.top).toBe(most + 1);
      expect(dictionary.count).toBe(model.size);
    }),
    { numRuns: numRuns * 2 },
  );
});

test('the empty name is 0, is nowhere stored, and cannot be pinned', () => {
  const { dictionary, names } = start();
  expect([names.intern(''), names.pin(''), names.idOf('')]).toEqual([0, 0, 0]);
  expect(names.internBytes(Buffer.from('ab'), 1, 1)).toBe(0);
  expect(names.findBytes(Buffer.from('ab'), 1, 1)).toBe(0);
  names.retain(0);
  expect([names.text(0), names.isPinned(0), names.mentions(0)]).toEqual(['', false, 0]);
  expect([dictionary.count, names.top]).toEqual([0, 1]);
});

test.each(['a', 'viewer', 'x'.repeat(70)])('a name that went, %s, is asked for anew', (name) => {
  // One of sixteen slots remembers it: every slot is tried.
  for (let more = 0; more < 40; more++) {
    const { names } = start();
    const text = name + 'z'.repeat(more);
    const id = names.intern(text);
    names.retain(id);
    expect(names.idOf(text)).toBe(id);
    names.release(id);
    expect(names.idOf(text)).toBe(-1);
    const other = names.intern('other');
    names.retain(other);
    expect(other).toBe(id);
    expect(names.idOf(text)).toBe(-1);
    const again = names.intern(text);
    names.retain(again);
    expect([again, names.text(again), names.text(other)]).toEqual([2, text, 'other']);
  }
});

test('what no name can be is unknown', () => {
  const { names } = start();
  names.pin('a');
  expect(names.idOf('\ud800')).toBe(-1);
  expect(names.idOf('a'.repeat(70_000))).toBe(-1);
  expect(names.findBytes(Buffer.alloc(70_000, 'a'), 0, 70_000)).toBe(-1);
  const refused = expect.objectContaining({ reason: 'FIELD_INVALID' }) as unknown;
  expect(() => names.intern('\ud800')).toThrow(refused);
  expect(() => names.internBytes(Buffer.alloc(70_000, 'a'), 0, 70_000)).toThrow(refused);
});

test('thousands of names keep their texts over pages, and pages are counted', () => {
  const { allocator, dictionary, names } = start();
  const count = 10_000;
  for (let i = 1; i <= count; i++) {
    expect(names.intern(`name${i}`)).toBe(i);
    names.retain(i);
  }
  for (let i = 1; i <= count; i++) {
    expect(names.idOf(`name${i}`)).toBe(i);
    expect([names.text(i), names.mentions(i)]).toEqual([`name${i}`, 1]);
  }
  const others = dictionary.records.bytes + dictionary.table.bytes;
  expect(names.bytes).toBe(allocator.bytes - others);
  for (let i = 1; i <= count; i++) names.release(i);
  expect([dictionary.count, names.idOf('name1')]).toEqual([0, -1]);
  for (let i = 1; i <= count; i++) names.intern(`again${i}`);
  expect(names.top).toBe(count + 1);
});

describe('a name', () => {
  test('outlives its mentions once it is pinned', () => {
    const { names } = start();
    const id = names.intern('kept');
    names.retain(id);
    expect(names.isPinned(id)).toBe(false);
    expect(names.pin('kept')).toBe(id);
    expect([names.isPinned(id), names.mentions(id)]).toEqual([true, 1]);
    names.release(id);
    expect([names.idOf('kept'), names.isPinned(id), names.mentions(id)]).toEqual([id, true, 0]);
  });

  test('that nothing mentions is not released', () => {
    const { names } = start();
    const id = names.pin('kept');
    expect(() => names.release(id)).toThrow('mentions');
    const unpinned = names.intern('other');
    expect(() => names.release(unpinned)).toThrow('mentions');
  });
});

test('pinned names get the ids back that they had, and the ids between are free', () => {
  const { names } = start();
  names.restorePinned(3, 'three');
  names.restorePinned(4, 'four');
  names.restorePinned(40, 'forty');
  for (const [id, name] of [
    [3, 'three'],
    [4, 'four'],
    [40, 'forty'],
  ] as const) {
    expect([names.idOf(name), names.text(id), names.isPinned(id)]).toEqual([id, name, true]);
  }
  expect(names.top).toBe(41);
  const ids = Array.from({ length: 37 }, (_, i) => names.intern(`new${i}`));
  expect(new Set(ids).size).toBe(37);
  expect(ids.every((id) => id > 0 && id < 40 && id !== 3 && id !== 4)).toBe(true);
  expect(names.intern('beyond')).toBe(41);
  expect(() => names.restorePinned(7, 'seven')).toThrow('order');
});
