import type { Masker } from './masker.ts';

/** A copy with every name and value masked. */
export function maskedRecord(
  masker: Masker,
  record: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [masker.mask(name), masker.mask(value)]),
  );
}
