import fc from 'fast-check';
import { expect, test } from 'vitest';
import { orderedJsonText, parseOrderedJson, type JsonNode } from './ordered-json.ts';

const LIMITS = { depthMax: 32 };

test('agrees with JSON.parse on all JSON', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      const node = parseOrderedJson(text, LIMITS);
      expect(JSON.parse(orderedJsonText(node))).toEqual(JSON.parse(text));
    }),
    { numRuns: 300 },
  );
});

test('refuses what JSON.parse refuses', () => {
  const start = '{"a":["x\\u00e9\\n",-1.5e+3,true,null,{}],"b":"\\"]"}';
  fc.assert(
    fc.property(
      fc.nat({ max: start.length - 1 }),
      fc.constantFrom('', '"', '{', '}', ',', '0', '\\', '\n', 'x'),
      (at, change) => {
        const text = start.slice(0, at) + change + start.slice(at + 1);
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        if (isJson) expect(plain(parseOrderedJson(text, LIMITS))).toEqual(JSON.parse(text));
        else expect(() => parseOrderedJson(text, LIMITS)).toThrow(SyntaxError);
      },
    ),
    { numRuns: 500 },
  );
});

test('keeps the order of keys that look like numbers', () => {
  const node = parseOrderedJson('{"b":1,"10":2,"a":3,"2":4}', LIMITS);
  expect(node.kind === 'object' && node.entries.map(({ key }) => key)).toEqual([
    'b',
    '10',
    'a',
    '2',
  ]);
});

test('refuses a key that stands there twice, and deep nesting', () => {
  expect(() => parseOrderedJson('{"a":1,"a":2}', LIMITS)).toThrow(/twice/);
  expect(() => parseOrderedJson('['.repeat(100_000), LIMITS)).toThrow(/deeper/);
});

test('never quotes the text', () => {
  expect(() => parseOrderedJson('{"a": "hunter2 \\q"}', LIMITS)).toThrow(/^(?!.*hunter2)/);
});

function plain(node: JsonNode): unknown {
  return JSON.parse(orderedJsonText(node)) as unknown;
}
