import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import { type AuthzReason, fieldError } from './reasons.ts';

/** Characters at most of a slug. */
export const SLUG_CHARACTERS_MAX = 63;

const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Letters that have no decomposition into an ASCII one and marks. */
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

/** A slug that a caller chose: lower-case ASCII words joined by `-`. Errors: FIELD_INVALID. */
export function checkSlug(field: string, value: string): void {
  if (value.length > SLUG_CHARACTERS_MAX || !SLUG.test(value)) {
    throw fieldError(
      field,
      `must be lower-case ASCII words joined by -, at most ${SLUG_CHARACTERS_MAX} characters`,
    );
  }
}

/**
 * The slug of a display name: its words in lower-case ASCII, folded where Unicode has a plain form,
 * joined by `-`; `fallback` where nothing is left. O(length).
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

/** The slug with a number behind it, still within the length. */
export function numberedSlug(slug: string, number: number): string {
  if (number === 1) return slug;
  const suffix = `-${number}`;
  return cut(slug, SLUG_CHARACTERS_MAX - suffix.length) + suffix;
}

/** Numbers tried one by one; beyond, a free one is searched in steps. */
const LINEAR_MAX = 32;
const NUMBER_MAX = 2 ** 30;

/**
 * `slug`, or else `slug-2`, `slug-3`… whichever is free first. Where the first 32 are taken, one that
 * is free while the one before it is taken, found in O(log taken) queries of at most 32 slugs.
 * `takenOf` says which of the given slugs are taken; nobody else may take one in the meantime.
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
