import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCUMENTS } from './support/documents.ts';

/** Of a row that begins a table: what stands below a head. */
const BORDER = /^\|[\s:|-]+\|$/;

test('every code block begins and ends with a line of its own', () => {
  const wrong = DOCUMENTS.flatMap((file) => {
    const fences = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.includes('```'));
    const odd = fences.length % 2 === 0 ? [] : [`${file}: ${fences.length} fences`];
    return [...odd, ...fences.filter((line) => !/^ *```\w*$/.test(line))];
  });
  expect(wrong).toEqual([]);
});

test('every row of a document stands in a table with a head', () => {
  const lost = DOCUMENTS.flatMap((file) =>
    rowsWithoutHead(readFileSync(file, 'utf8')).map((number) => `${file}:${number}`),
  );
  expect(lost).toEqual([]);
});

test('a row behind an empty line or a paragraph is found, one in a code block is none', () => {
  const text = '| a |\n|---|\n| 1 |\n\n| 2 |\ntext\n| 3 |\n```\n| 4 |\n```\n';
  expect(rowsWithoutHead(text)).toEqual([5, 7]);
});

/** Line numbers, from 1. */
function rowsWithoutHead(text: string): readonly number[] {
  const lines = text.split('\n');
  let isCode = false;
  return lines.flatMap((line, index) => {
    if (line.startsWith('```')) isCode = !isCode;
    const isFirst = line.startsWith('|') && lines[index - 1]?.startsWith('|') !== true;
    return isFirst && !isCode && !BORDER.test(lines[index + 1] ?? '') ? [index + 1] : [];
  });
}
