import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../test/support/any-text.ts';
import { checkSlug, freeSlug, numberedSlug, slugOf } from './slug.ts';

test.each([
  ['My Team', 'my-team'],
  ['  --My__Team!!  ', 'my-team'],
  ['Ünïcode Straße Ærø Łódź', 'unicode-strasse-aero-lodz'],
  ['İstanbul ıIi', 'istanbul-iii'],
  ['ＦＵＬＬ ｗｉｄｔｈ ①', 'full-width-1'],
  ['日本 🦊', 'team'],
  ['', 'team'],
  ['a'.repeat(62) + ' b', 'a'.repeat(62)],
  ['x'.repeat(200), 'x'.repeat(63)],
])('the slug of %j is %s', (name, slug) => {
  expect(slugOf(name, 'team')).toBe(slug);
});

test('whatever the name, its slug is one that a caller could have given', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: anyCharacter, maxLength: 220, size: 'max' }),
      fc.integer({ min: 1, max: 1e6 }),
      (name, n) => {
        checkSlug('slug', slugOf(name, 'team'));
        checkSlug('slug', numberedSlug(slugOf(name, 'team'), n));
      },
    ),
  );
});

describe('a free slug', () => {
  const search = async (isTaken: (slug: string) => boolean): Promise<[string, number]> => {
    let questions = 0;
    const slug = await freeSlug('a', (slugs) => {
      questions++;
      expect(slugs.length).toBeLessThanOrEqual(32);
      return Promise.resolve(new Set(slugs.filter(isTaken)));
    });
    return [slug, questions];
  };

  test.each([0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 1_000, 1_023, 1_024, 1_025, 99_999])(
    'after %i without a gap is the next one, found with few questions',
    async (count) => {
      const taken = new Set(Array.from({ length: count }, (_, i) => numberedSlug('a', i + 1)));
      const [slug, questions] = await search((each) => taken.has(each));
      expect(slug).toBe(numberedSlug('a', count + 1));
      expect(questions).toBeLessThanOrEqual(6);
    },
  );

  test('is free, whatever is taken', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 1, max: 300 }), {
          minLength: 1,
          maxLength: 300,
          size: 'max',
        }),
        async (numbers) => {
          const taken = new Set(numbers.map((n) => numberedSlug('a', n)));
          const [slug] = await search((each) => taken.has(each));
          expect(taken.has(slug)).toBe(false);
        },
      ),
    );
  });

  test('where all forms are taken is refused', async () => {
    await expect(search(() => true)).rejects.toMatchObject({ reason: 'SLUG_TAKEN' });
  });
});
