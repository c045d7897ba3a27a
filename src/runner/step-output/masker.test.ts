import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMasker, type Masker } from './masker.ts';
import { formsOfSecret } from './secret-encodings.ts';

function maskerOf(...values: readonly string[]): Masker {
  const masker = createMasker();
  for (const value of values) {
    masker.add(value);
  }
  return masker;
}

/** Slow and obvious: a flag for each character, runs of flagged ones replaced. */
function referenceMask(text: string, values: readonly string[]): string {
  const isHidden = Array.from({ length: text.length }, () => false);
  for (const form of values.flatMap((value) => [...formsOfSecret(value)])) {
    for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + 1)) {
      isHidden.fill(true, at, at + form.length);
    }
  }
  let result = '';
  for (let index = 0; index < text.length; index += 1) {
    if (isHidden[index] !== true) {
      result += text[index] ?? '';
    } else if (isHidden[index - 1] !== true) {
      result += '***';
    }
  }
  return result;
}

const secretCharacter = fc.constantFrom(...Array.from('abcXYZ019&+/="\'<>% \\\té€😀$'));
const secret = fc
  .array(secretCharacter, { minLength: 1, maxLength: 40, size: 'max' })
  .map((characters) => characters.join(''))
  .filter((value) => value.trim() !== '');
const noise = fc
  .array(fc.constantFrom(...Array.from('abcXYZ019 .:/é')), { maxLength: 12, size: 'max' })
  .map((c) => c.join(''));

/** How programs print a secret, written without the code under test. */
const PRINTERS: Readonly<Record<string, (value: string) => string>> = {
  itself: (value) => value,
  base64: (value) => Buffer.from(value).toString('base64'),
  'url-safe base64': (value) => Buffer.from(value).toString('base64url'),
  hex: (value) => Buffer.from(value).toString('hex'),
  'upper-case hex': (value) => Buffer.from(value).toString('hex').toUpperCase(),
  json: (value) => JSON.stringify(value),
  uri: (value) => encodeURIComponent(value),
  form: (value) => new URLSearchParams({ a: value }).toString(),
  xml: (value) =>
    value.replace(/[&<>"]/gu, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c] ?? '&quot;'),
  expression: (value) => `'${value.replaceAll("'", "''")}'`,
  'double quotes': (value) => `"${value.replaceAll('"', '\\"')}"`,
};

describe('mask', () => {
  test('hides what the reference hides, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 6 }),
        fc.array(fc.tuple(noise, fc.nat(), fc.constantFrom(...Object.keys(PRINTERS))), {
          maxLength: 6,
        }),
        (values, parts) => {
          const text = parts
            .map(
              ([before, pick, name]) =>
                before + (PRINTERS[name]?.(values[pick % values.length] ?? '') ?? ''),
            )
            .join('-');
          const masker = maskerOf(...values);
          const masked = masker.mask(text);
          expect(masked).toBe(referenceMask(text, values));
          expect(masker.contains(text)).toBe(masked !== text);
        },
      ),
      { numRuns: 400 },
    );
  });

  test.each(Object.entries(PRINTERS))('no planted secret survives as %s', (_, print) => {
    fc.assert(
      fc.property(
        fc.array(
          secret.filter((value) => value.trim().length >= 6),
          { minLength: 1, maxLength: 4 },
        ),
        noise,
        noise,
        (values, before, after) => {
          const masker = maskerOf(...values);
          for (const value of values) {
            const printed = print(value.trim());
            // Quotes around it, or the name of a form field, may stay.
            const core = printed.replace(/^(?:a=|["'])|["']$/gu, '');
            expect(masker.mask(`${before}${printed}${after}`)).not.toContain(core);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  test('of base64 of longer data nothing stays that the secret alone decides', () => {
    fc.assert(
      fc.property(
        secret.filter((value) => Buffer.byteLength(value) >= 6 && value === value.trim()),
        fc.uint8Array({ maxLength: 10 }),
        fc.uint8Array({ maxLength: 10 }),
        fc.constantFrom('base64', 'base64url'),
        (value, before, after, encoding) => {
          const bytes = Buffer.from(value);
          const whole = Buffer.concat([before, bytes, after]).toString(encoding);
          const from = Math.ceil((before.length * 8) / 6);
          const to = Math.floor(((before.length + bytes.length) * 8) / 6);
          const masked = maskerOf(value).mask(whole);
          expect(masked).toContain('***');
          expect(masked).not.toContain(whole.slice(from, to));
          expect(masked.startsWith(whole.slice(0, Math.max(0, from - 1)))).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each([
    ['overlapping secrets', ['abcdef', 'defghi'], 'x abcdefghi y', 'x *** y'],
    ['touching secrets', ['abcd', 'efgh'], 'abcdefgh', '***'],
    ['one within another', ['secret', 'my secret text'], 'my secret text, secret', '***, ***'],
    ['repeated', ['aaaa'], 'aaaaaaaaa', '***'],
    ['short ones', ['x', 'yz'], 'axbyzc', 'a***b***c'],
    ['blank ones', ['', '  ', '\n'], 'a b', 'a b'],
    ['trailing line end', ['token\n'], 'a token b', 'a *** b'],
    ['each line', ['first line\r\nsecond line'], 'first line|second line', '***|***'],
    ['not its brackets', ['{\n"key": 1\n}'], '{ } "key": 1', '{ } ***'],
    ['double quotes around it', ['"quoted secret"'], 'quoted secret', '***'],
    ['before & in PowerShell', ['secret1&secret2&secret3'], 'secret1&secret2&', '***'],
    ['after & in PowerShell', ['secret1&secret2&secret3'], 'secret3', '***'],
    ['after &+ in PowerShell', ['secret1&+secret2'], 'ecret2 secret1&+', '*** ***'],
    ['shell quoting', ["it's a secret"], String.raw`x='it'\''s a secret'`, "x='***'"],
    ['lower-case percent', ['a/b/c+d'], 'a%2fb%2fc%2bd', '***'],
    ['ASCII JSON', ['pässwörd'], String.raw`{"a":"p\u00e4ssw\u00f6rd"}`, '{"a":"***"}'],
  ])('%s', (_, values, text, expected) => {
    expect(maskerOf(...values).mask(text)).toBe(expected);
  });

  test('values added later count from then on', () => {
    const masker = createMasker();
    expect(masker.maxLength).toBe(0);
    expect(masker.mask('hidden later')).toBe('hidden later');
    masker.add('later');
    expect(masker.mask('hidden later')).toBe('hidden ***');
    expect(masker.maxLength).toBeGreaterThanOrEqual(5);
  });

  test('refuses to hide without end', () => {
    const masker = createMasker();
    const add = (): void => {
      for (let index = 0; index < 2_000; index += 1) {
        masker.add(String(index).padEnd(40_000, 'x'));
      }
    };
    expect(add).toThrow(expect.objectContaining({ reason: 'INVALID_VALUE' }));
  });
});
