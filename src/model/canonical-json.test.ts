import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonValue } from '../shared/json.ts';
import { canonicalJson } from './canonical-json.ts';

test('the examples of RFC 8785', () => {
  const numbers = [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001];
  const string = '€$\u000f\nA\'B"\\\\"/';
  expect(canonicalJson({ numbers, string, literals: [null, true, false] })).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  const sorted = canonicalJson({
    '\u20ac': 1,
    '\r': 2,
    '\ufb33': 3,
    '1': 4,
    '\ud83d\ude00': 5,
    '\u0080': 6,
    ö: 7,
  });
  expect(Object.values(JSON.parse(`[${sorted.replaceAll(/"[^"]*":/g, '').slice(1, -1)}]`))).toEqual(
    [2, 4, 6, 7, 1, 5, 3],
  );
});

test('it parses back to the value, whatever the order of members', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value as JsonValue);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(canonicalJson(JSON.parse(text))).toBe(text);
    }),
  );
});

test('numbers that JSON cannot hold and endless nesting are refused', () => {
  expect(() => canonicalJson([NaN])).toThrow(RangeError);
  let deep: JsonValue = 0;
  for (let i = 0; i < 200; i++) deep = [deep];
  expect(() => canonicalJson(deep)).toThrow(RangeError);
});
