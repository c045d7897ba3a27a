import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CsvRows } from '../../src/cli/models/tuples/csv-rows.ts';
import { JsonValues } from '../../src/cli/models/tuples/json-values.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

describe('what comes in pieces', () => {
  const chunksOf = (text: string, cuts: readonly number[]): readonly string[] => {
    const at = [
      0,
      ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b),
      text.length,
    ];
    return at.slice(1).map((end, i) => text.slice(at[i], end));
  };
  const cuts = fc.array(fc.nat(10_000), { maxLength: 20, size: 'max' });

  test('JSON is cut into its objects wherever the pieces end', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue());
    const list = fc.array(value, { maxLength: 8, size: 'max' });
    const form = fc.constantFrom('list', 'page', 'lines');
    fc.assert(
      fc.property(list, form, cuts, fc.nat(2), (values, shape, at, indent) => {
        // An object that has a list of this name is a page.
        const objects = values.filter((one) => !('tuples' in one || 'tuple_keys' in one));
        const page = { before: [1], tuples: objects, continuation_token: '' };
        const text =
          shape === 'list'
            ? JSON.stringify(objects, null, indent)
            : shape === 'page'
              ? JSON.stringify(page, null, indent)
              : objects.map((one) => JSON.stringify(one, null, indent)).join('\n');
        const reader = new JsonValues();
        const found = chunksOf(text, at).flatMap((chunk) => [...reader.feed(chunk)]);
        reader.finish();
        const parsed = found.map((one) => ({ ...one, value: JSON.parse(one.text) as unknown }));
        expect(parsed.filter(({ isAround }) => !isAround).map((one) => one.value)).toEqual(
          JSON.parse(JSON.stringify(objects)),
        );
        const around = parsed.filter(({ isAround }) => isAround).map((one) => one.value);
        expect(around).toEqual(shape === 'page' ? [{ ...page, tuples: [] }] : []);
      }),
      { seed },
    );
  });

  test('CSV is cut into its rows wherever the pieces end', () => {
    const field = fc.string({
      unit: fc.constantFrom('a', '"', ',', '\n', ' ', 'é', '\r\n'),
      maxLength: 6,
    });
    const row = fc.array(field, { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), cuts, fc.boolean(), (rows, at, endsOpen) => {
        const quoted = rows.map((one) =>
          one.map((text) => `"${text.replaceAll('"', '""')}"`).join(','),
        );
        const text = quoted.join('\r\n') + (endsOpen ? '' : '\r\n');
        const reader = new CsvRows();
        const found = [
          ...chunksOf(text, at).flatMap((chunk) => [...reader.feed(chunk)]),
          ...reader.finish(),
        ];
        expect(found.map(({ fields }) => fields)).toEqual(rows);
        const lineOf = (index: number): number =>
          quoted.slice(0, index).join('\n').split('\n').length + (index === 0 ? 0 : 1);
        expect(found.map(({ line }) => line)).toEqual(rows.map((_, index) => lineOf(index)));
      }),
      { seed },
    );
  });
});
