import { expect, test } from 'vitest';
import { numberFromText, numberText } from './number-text.ts';

// What .NET's G15 gives, by the rules of Number.Formatting.cs and Number.Dragon4.cs of dotnet/runtime.
test.each<[number, string]>([
  [0, '0'],
  [-0, '0'],
  [7, '7'],
  [-42.5, '-42.5'],
  [0.1 + 0.2, '0.3'],
  [3.1, '3.1'],
  [1 / 3, '0.333333333333333'],
  [-2 / 3, '-0.666666666666667'],
  [0.0001, '0.0001'],
  [0.000123, '0.000123'],
  [0.00001, '1E-05'],
  [0.0000123, '1.23E-05'],
  [999_999_999_999_999, '999999999999999'],
  [999_999_999_999_999.9, '1E+15'],
  [1e15, '1E+15'],
  [-1e15, '-1E+15'],
  [1_234_567_890_123_456, '1.23456789012346E+15'],
  // Halfway between two texts: to the even digit.
  [1_234_567_890_123_445, '1.23456789012344E+15'],
  [1_234_567_890_123_455, '1.23456789012346E+15'],
  [123_456_789_012_344.5, '123456789012344'],
  [123_456_789_012_345.5, '123456789012346'],
  [1e100, '1E+100'],
  [5e-324, '4.94065645841247E-324'],
  [Number.MAX_VALUE, '1.79769313486232E+308'],
  [Number.NaN, 'NaN'],
  [-Infinity, '-Infinity'],
])('%d is %s', (value, text) => {
  expect(numberText(value)).toBe(text);
});

test('numbers of at most 15 digits come back from their text', () => {
  for (let power = -20; power <= 20; power += 1) {
    for (const digits of [1, 12, 123_456_789_012_345]) {
      const value = Number(`${digits}e${power}`);
      expect(numberFromText(numberText(value))).toBe(value);
    }
  }
});

test.each<[string, number]>([
  ['', 0],
  [' \t\n\u00A0\u0085', 0],
  [' 12 ', 12],
  ['+.5e1', 5],
  ['5.', 5],
  ['0x1f', 31],
  ['0xFFFFFFFF', -1],
  ['0x0000000080000000', -2_147_483_648],
  ['0o17', 15],
  ['0o37777777777', -1],
  ['infinity', Infinity],
  ['-Infinity', -Infinity],
  ['1e999', Infinity],
])('%j reads as %d', (text, value) => {
  expect(numberFromText(text)).toBe(value);
});

test.each([
  '0b11',
  '0X1F',
  '0O17',
  '-0x1',
  '0x',
  '0x1FFFFFFFF',
  '0o77777777777',
  '0o8',
  '1_000',
  '1e',
  '.',
  '\uFEFF1',
  'NaN',
  'one',
])('%j is no number', (text) => {
  expect(numberFromText(text)).toBeNaN();
});
