import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import { type AuthzReason, fieldError } from './reasons.ts';

/** Maximum length of a slug in characters. */
export const SLUG_CHARACTERS_MAX = 63;

const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** ASCII forms of letters that Unicode does not decompose into an ASCII letter and marks. */
const FOLDED: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ı: 'i',
  ł: 'l',
  þ: 'th',
  ŧ: 't',
};
const FOLDABLE = new RegExp(`[${Object.keys(FOLDED).join('')}]`, 'g');

/** Checks a slug that a caller chose: lower-case ASCII words joined by `-`. Errors: FIELD_INVALID. */
export function checkSlug(field: string, value: string): void {
  if (value.length > SLUG_CHARACTERS_MAX || !SLUG.test(value)) {
    throw fieldError(
      field,
      `must be lower-case ASCII words joined by -, at most ${SLUG_CHARACTERS_MAX} characters`,
    );
  }
}

/**
 * Derives a slug from a display name: its words in lower-case ASCII, folded where Unicode has a plain form, joined by
 * `-`. Returns `fallback` if nothing is left. O(length).
 */
export function slugOf(displayName: string, fallback: string): string {
  const plain = displayName
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(FOLDABLE, (letter) => FOLDED[letter] ?? '');
  const words = plain.match(/[a-z0-9]+/g) ?? [];
  return cut(words.join('-'), SLUG_CHARACTERS_MAX) || fallback;
}

/** Appends a number to a slug, within the maximum length. Number 1 is not appended. */
export function numberedSlug(slug: string, number: number): string {
  if (number === 1) return slug;
  const suffix = `-${number}`;
  return cut(slug, SLUG_CHARACTERS_MAX - suffix.length) + suffix;
}

/** Maximum number that is tried one by one; above it, the search takes larger steps. */
const LINEAR_MAX = 32;
const NUMBER_MAX = 2 ** 30;

/**
 * Finds a free slug: the first free one of `slug`, `slug-2`, `slug-3` and so on. If the first 32 are taken, finds a
 * free one whose predecessor is taken, in O(log taken) queries of at most 32 slugs. `takenOf` returns those of the
 * given slugs that are taken. No other caller may take a slug in the meantime. Errors: SLUG_TAKEN.
 */
export async function freeSlug(
  slug: string,
  takenOf: (slugs: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<string> {
  const firstFree = async (numbers: readonly number[]): Promise<number | undefined> => {
    const taken = await takenOf(numbers.map((number) => numberedSlug(slug, number)));
    return numbers.find((number) => !taken.has(numberedSlug(slug, number)));
  };
  const first = await firstFree(Array.from({ length: LINEAR_MAX }, (_, i) => i + 1));
  if (first !== undefined) return numberedSlug(slug, first);
  const powers: number[] = [];
  for (let power = LINEAR_MAX * 2; power <= NUMBER_MAX; power *= 2) powers.push(power);
  let free = await firstFree(powers);
  if (free === undefined)
    throw new AppError<AuthzReason>('SLUG_TAKEN', `slug: all forms of ${slug} are taken`);
  let taken = free / 2;
  while (free - taken > 1) {
    const step: number = Math.ceil((free - taken) / LINEAR_MAX);
    const numbers: number[] = [];
    for (let number = taken + step; number < free; number += step) numbers.push(number);
    const found: number = (await firstFree(numbers)) ?? free;
    taken = found === free ? (numbers.at(-1) ?? taken) : found - step;
    free = found;
  }
  assert(free > taken, 'a free number lies behind a taken one');
  return numberedSlug(slug, free);
}

function cut(slug: string, length: number): string {
  return slug.slice(0, length).replace(/-+$/, '');
}
