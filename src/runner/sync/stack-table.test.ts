import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withoutStackTable, withStackTable } from './stack-table.ts';

const TABLE = [
  '<!-- runner-stack:begin -->',
  '### Stack: House',
  '',
  '* #3',
  '* **#2 ⬅ this one**',
  '* #1',
  '* `main`',
  '<!-- runner-stack:end -->',
].join('\n');

describe('the table of a stack', () => {
  test('shows the top first, and keeps its heading', () => {
    const body = withStackTable('', [1, 2, 3], 2, 'main', 'House');
    expect(body).toBe(`${TABLE}\n`);
    expect(withStackTable(body, [1, 2, 3], 2, 'main', undefined)).toBe(body);
    expect(withStackTable(body, [1, 2], 2, 'main', 'Hut')).toContain('### Stack: Hut\n\n* **#2');
  });

  test('a title cannot end it', () => {
    const title = 'x <!-- runner-stack:end --> y\n### z';
    const body = withStackTable('mine', [1, 2], 1, 'main', title);
    expect(withStackTable(body, [1, 2], 1, 'main', title)).toBe(body);
    expect(withoutStackTable(body)).toBe('mine');
  });

  test('is found again whatever people write around it', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('<!-- runner-stack:begin -->', '### Stack: theirs', '\r\n', '`', '<!--'),
    );
    fc.assert(
      fc.property(text, text, (before, after) => {
        // An end of their own would be taken for the table's, a begin for its begin.
        fc.pre(!before.includes('runner-stack') && !after.includes('runner-stack'));
        const body = `${before}${TABLE}${after}`;
        const next = withStackTable(body, [7, 8], 8, 'trunk', undefined);
        expect(next.startsWith(before)).toBe(true);
        expect(next.endsWith(after)).toBe(true);
        expect(next).toContain('### Stack: House\n\n* **#8');
        expect(withStackTable(next, [7, 8], 8, 'trunk', undefined)).toBe(next);
        expect(withoutStackTable(body)).toBe((before + after).trim());
      }),
      { numRuns: 200 },
    );
  });
});
