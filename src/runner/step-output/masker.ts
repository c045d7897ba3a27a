import { AppError } from '../../shared/app-error.ts';
import { createPatternSet } from './pattern-set.ts';
import { formsOfSecret } from './secret-encodings.ts';

const REPLACEMENT = '***';
/** Characters of all patterns of a job together; a step that adds masks without end meets it. */
const PATTERN_CHARACTERS_MAX = 64 * 1024 * 1024;

/** Hides secrets in texts: see secret-encodings.ts for what counts as one. */
export interface Masker {
  /**
   * Hides `value`, each of its lines and their encodings from now on. A blank value is ignored.
   * Errors: INVALID_VALUE when too much is to be hidden already.
   */
  add(value: string): void;
  /** `text` with every occurrence replaced by `***`; occurrences that overlap or touch become one. */
  mask(text: string): string;
  /** Whether `mask` would change `text`; faster than mask. */
  contains(text: string): boolean;
  /**
   * Masks the start of a text that arrives piecewise: everything that occurrences beginning before `cut`
   * decide. Of `text` the first `covered` characters count as hidden (from the piece before). The
   * caller has at least maxLength - 1 characters after `cut`, or the end of the text.
   *
   * @returns the masked piece, and how many characters after `cut` it has hidden already.
   */
  maskPiece(
    text: string,
    cut: number,
    covered: number,
  ): { readonly masked: string; readonly covered: number };
  /** Characters of the longest text to hide; 0 without any. */
  readonly maxLength: number;
}

export function createMasker(): Masker {
  const patterns = createPatternSet();
  const values = new Set<string>();
  let maxLength = 0;
  let characters = 0;
  return {
    get maxLength() {
      return maxLength;
    },
    add(value) {
      if (values.has(value)) {
        return;
      }
      for (const form of formsOfSecret(value)) {
        characters += form.length;
        if (characters > PATTERN_CHARACTERS_MAX) {
          throw new AppError('INVALID_VALUE', 'There are too many or too long values to hide');
        }
        patterns.add(form);
        maxLength = Math.max(maxLength, form.length);
      }
      values.add(value);
    },
    mask(text) {
      if (maxLength === 0 || !patterns.occursIn(text)) {
        return text;
      }
      const intervals: number[] = [];
      patterns.collect(text, intervals);
      return replaceIntervals(text, mergedIntervals(intervals), text.length).masked;
    },
    contains: (text) => maxLength > 0 && patterns.occursIn(text),
    maskPiece(text, cut, covered) {
      const intervals = covered > 0 ? [0, covered] : [];
      patterns.collect(text, intervals);
      return replaceIntervals(text, mergedIntervals(intervals), cut);
    },
  };
}

type Interval = { readonly start: number; end: number };

/** Sorted; intervals that overlap or touch are one. */
function mergedIntervals(flat: readonly number[]): Interval[] {
  const sorted: Interval[] = [];
  for (let index = 0; index < flat.length; index += 2) {
    sorted.push({ start: flat[index] as number, end: flat[index + 1] as number });
  }
  sorted.sort((a, b) => a.start - b.start);
  const merged: Interval[] = [];
  for (const interval of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && interval.start <= last.end) {
      last.end = Math.max(last.end, interval.end);
    } else {
      merged.push(interval);
    }
  }
  return merged;
}

function replaceIntervals(
  text: string,
  merged: readonly Interval[],
  cut: number,
): { readonly masked: string; readonly covered: number } {
  let masked = '';
  let from = 0;
  for (const { start, end } of merged) {
    if (start >= cut) {
      break;
    }
    masked += text.slice(from, start) + REPLACEMENT;
    from = end;
  }
  if (from < cut) {
    masked += text.slice(from, cut);
  }
  return { masked, covered: Math.max(0, from - cut) };
}

/** A copy with every name and value masked. */
export function maskedRecord(
  masker: Masker,
  record: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [masker.mask(name), masker.mask(value)]),
  );
}
