import fc from 'fast-check';
import { expect, test } from 'vitest';
import { blockWords, BLOCK_WORDS_MIN, Dictionary, RECORD_PAGE_WORDS } from './dictionary.ts';
import { PageAllocator } from './page-allocator.ts';
import { hashScratch, loadBytes, loadText } from './text-scratch.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);
const allocatorOf = (): PageAllocator => new PageAllocator(2 ** 27);

test('the dictionary reuses what was freed, also for strings of other lengths', () => {
  const lengthArb = fc.oneof(
    fc.integer({ min: 0, max: 40 }),
    fc.integer({ min: 400, max: 3000 }),
    fc.constantFrom(65_535, 40_000),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.nat(30), lengthArb), { maxLength: 120, size: 'max' }),
      (steps) => {
        const dictionary = new Dictionary(allocatorOf());
        const model = new Map<string, number>();
        for (const [add, seed, length] of steps) {
          const text =
            String.fromCharCode(97 + (seed % 26)).repeat(length) + (length < 65_535 ? 'z' : '');
          const bytes = loadText(text);
          const hash = hashScratch(bytes, 5);
          const known = model.get(text);
          expect(dictionary.recordOf(5, bytes, hash)).toBe(known ?? 0);
          if (add && known === undefined) model.set(text, dictionary.insert(5, bytes, hash));
          else if (!add && known !== undefined) {
            dictionary.remove(known);
            model.delete(text);
          }
        }
        const walked: number[] = [];
        for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at)))
          walked.push(at);
        expect(walked).toEqual([...model.values()].toSorted((a, b) => a - b));
        for (const [text, address] of model) expect(dictionary.text(address) === text).toBe(true);
      },
    ),
    { numRuns: Math.ceil(numRuns / 4) },
  );
});

test('ids are ordered by their UTF-8 bytes', () => {
  const texts = [
    '',
    'a',
    'a\u0000',
    'aa',
    'aab',
    'aaba',
    'b',
    'é',
    '日本',
    '\u{ffff}',
    '\u{1f600}',
    '\u{e000}',
    'abcd',
    'abcde',
    'abce',
  ];
  const dictionary = new Dictionary(allocatorOf());
  const addressOf = new Map<string, number>();
  for (const text of texts) {
    const length = loadText(text);
    addressOf.set(text, dictionary.insert(1, length, hashScratch(length, 1)));
  }
  for (const a of texts) {
    for (const b of texts) {
      const sign = Math.sign(
        dictionary.compare(addressOf.get(a) as number, addressOf.get(b) as number),
      );
      expect(sign).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
    }
  }
});

/** Adds under one hash for all, so that only the comparison distinguishes strings. */
function addAlike(dictionary: Dictionary, owner: number, text: string): number {
  return dictionary.insert(owner, loadText(text), 5);
}

test('strings and owners of one hash are told apart by what they are', () => {
  const dictionary = new Dictionary(allocatorOf());
  const texts = [
    '',
    'a',
    'b',
    'ab',
    'abc',
    'abcd',
    'abce',
    'abcda',
    'abcdb',
    'abcdefgh',
    'a\0',
    '\0',
  ];
  const find = (owner: number, text: string): number =>
    dictionary.recordOf(owner, loadText(text), 5);
  const known = new Map<string, number>();
  for (const text of texts) {
    for (const owner of [1, 2]) {
      expect(find(owner, text)).toBe(0);
      known.set(`${owner}${text}`, addAlike(dictionary, owner, text));
    }
  }
  expect(new Set(known.values()).size).toBe(texts.length * 2);
  for (const text of texts) {
    for (const owner of [1, 2]) {
      const address = known.get(`${owner}${text}`) as number;
      expect(find(owner, text)).toBe(address);
      expect(dictionary.text(address)).toBe(text);
      expect(dictionary.matches(address, owner, loadText(text))).toBe(true);
      expect(dictionary.matches(address, owner + 1, loadText(text))).toBe(false);
    }
    expect([find(3, text), find(1, `${text}?`)]).toEqual([0, 0]);
  }
  expect(dictionary.recordOf(1, loadText('a'), 6)).toBe(0);
});

test('bytes are found as their text is, and a hidden record is not', () => {
  const dictionary = new Dictionary(allocatorOf());
  const length = loadText('é-one');
  const address = dictionary.insert(4, length, hashScratch(length, 4));
  const hidden = dictionary.addHidden(4, loadText('hidden'));
  const bytes = Buffer.from('<é-one><hidden>');
  expect(dictionary.findBytes(4, bytes, 1, 7)).toBe(address);
  expect(dictionary.findBytes(5, bytes, 1, 7)).toBe(0);
  expect(dictionary.findBytes(4, bytes, 9, 15)).toBe(0);
  expect(dictionary.findBytes(4, Buffer.alloc(70_000), 0, 70_000)).toBe(0);
  const empty = dictionary.insert(4, loadText(''), hashScratch(0, 4));
  expect(dictionary.findBytes(4, bytes, 3, 3)).toBe(empty);
  expect([dictionary.text(hidden), dictionary.count, dictionary.table.entries]).toEqual([
    'hidden',
    3,
    2,
  ]);
});

test('freed room is used again before there is more, cut up if need be, and never twice', () => {
  const allocator = allocatorOf();
  const dictionary = new Dictionary(allocator);
  const live = new Map<string, number>();
  let seed = 1;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  const add = (length: number): void => {
    const text = `${live.size}:${random(1e9)}:`.padEnd(length, 'x');
    const bytes = loadText(text);
    live.set(text, dictionary.insert(9, bytes, hashScratch(bytes, 9)));
  };
  const remove = (text: string): void => {
    dictionary.remove(live.get(text) as number);
    live.delete(text);
  };
  const verify = (): void => {
    const walked: number[] = [];
    for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at))) {
      walked.push(at);
    }
    expect(walked).toEqual([...live.values()].toSorted((a, b) => a - b));
    for (const [text, address] of live)
      if (dictionary.text(address) !== text) throw new Error(text);
    expect([dictionary.count, dictionary.table.entries]).toEqual([live.size, live.size]);
  };
  // Ends of pages of every size: what does not fit at the end of a page is begun on the next one.
  for (let i = 0; i < 40; i++) add(20_000 + i * 4);
  verify();
  const pages = dictionary.records.pages.length;
  expect(pages).toBeGreaterThan(2);
  for (const text of live.keys()) if (text.length % 8 === 0) remove(text);
  verify();
  // Holes of large records hold small ones: no page more.
  for (let i = 0; i < 600; i++) add(20 + random(700));
  verify();
  expect(dictionary.records.pages).toHaveLength(pages);
  for (let round = 0; round < 12; round++) {
    for (const text of live.keys()) if (random(3) === 0) remove(text);
    for (let i = 0; i < 60; i++) add(20 + random(round % 3 === 0 ? 3_000 : 600));
    verify();
  }
  for (const text of live.keys()) remove(text);
  verify();
  const { bytes } = dictionary.records;
  for (let i = 0; i < 30; i++) add(20_000 + i * 4);
  verify();
  expect(dictionary.records.bytes).toBe(bytes);
});

test('a string loaded from bytes is stored as the same text', () => {
  const dictionary = new Dictionary(allocatorOf());
  const bytes = Buffer.from('xx日本語');
  const length = loadBytes(bytes, 2, bytes.length);
  const address = dictionary.insert(1, length, hashScratch(length, 1));
  expect(dictionary.text(address)).toBe('日本語');
  expect(dictionary.recordOf(1, loadText('日本語'), hashScratch(loadText('日本語'), 1))).toBe(
    address,
  );
});

test('blocks have the words of their record up to 128, and powers of two above', () => {
  expect([0, 4, 5, 500, 501, 1012, 1013].map(blockWords)).toEqual([4, 4, 5, 128, 256, 256, 512]);
});

test('what lies behind the shorter one of two strings is not compared', () => {
  const dictionary = new Dictionary(allocatorOf());
  const [short, , long] = ['abcd', '~'.repeat(255), 'abcde'].map((text) =>
    addAlike(dictionary, 1, text),
  );
  expect(dictionary.compare(short as number, long as number)).toBeLessThan(0);
  expect(dictionary.compare(long as number, short as number)).toBeGreaterThan(0);
});

test('text is read from where it is after its page has grown', () => {
  const dictionary = new Dictionary(allocatorOf());
  const first = addAlike(dictionary, 1, 'first');
  expect(dictionary.text(first)).toBe('first');
  const texts = Array.from({ length: 8 }, (_, i) => `${i}`.repeat(480));
  const addresses = texts.map((text) => addAlike(dictionary, 1, text));
  expect(addresses.map((address) => dictionary.text(address))).toEqual(texts);
  expect(dictionary.text(first)).toBe('first');
});

test.each([0, 1, 2, 3, 4, 5])('a page of which %i words are left is walked over', (left) => {
  const dictionary = new Dictionary(allocatorOf());
  const addresses: number[] = [];
  const addWords = (words: number): void => {
    addresses.push(addAlike(dictionary, 1, 'x'.repeat((words - 3) * 4)));
  };
  for (let i = 0; i < 511; i++) addWords(128);
  addWords(120 - left);
  addWords(4);
  expect(dictionary.top).toBe(RECORD_PAGE_WORDS - left);
  expect(dictionary.records.pages).toHaveLength(1);
  addWords(6);
  expect(addresses.at(-1)).toBe(RECORD_PAGE_WORDS);
  expect(dictionary.records.pages).toHaveLength(2);
  const walked: number[] = [];
  for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at))) {
    walked.push(at);
  }
  expect(walked).toEqual(addresses);
  // Of the rest only what can hold a record is free.
  const free = [...dictionary.bins.entries()].filter(([, address]) => address !== 0);
  const isBlock = left >= BLOCK_WORDS_MIN;
  expect(free).toEqual(isBlock ? [[left, RECORD_PAGE_WORDS - left]] : []);
});

test('a walk ends at a free block whose size is damaged', () => {
  const dictionary = new Dictionary(allocatorOf());
  const add = (text: string): number => {
    const bytes = loadText(text);
    return dictionary.insert(5, bytes, hashScratch(bytes, 5));
  };
  const freed = add('freed');
  const kept = add('kept');
  dictionary.remove(freed);
  expect(dictionary.next(0)).toBe(kept);
  (dictionary.records.pages[0] as Uint32Array)[freed] = 0;
  expect(() => dictionary.next(0)).toThrow('a free dictionary block has a size');
});
