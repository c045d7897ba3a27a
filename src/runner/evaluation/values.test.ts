import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import type { Template } from '../model/workflow.ts';
import { evaluateTemplate, evaluateText } from './evaluate.ts';

const at = { line: 1, column: 1 };

function valueOf(source: string, contexts: JsonObject = {}): Promise<JsonValue> {
  return evaluateTemplate({ kind: 'expression', source, at }, { contexts });
}

// GitHub's runner: EvaluationResult.AbstractEqual, ExpressionUtility.ParseNumber, OrdinalIgnoreCase of .NET.
test.each<[string, JsonValue]>([
  ["'ß' == 'SS'", false],
  ["'ß' == 'ẞ'", false],
  ["'straße' == 'STRAßE'", true],
  ["'ı' == 'I'", false],
  ["'ſ' == 'S'", false],
  ["'µ' == 'μ'", true],
  ["'ᾀ' == 'ᾈ'", true],
  ["'É' == 'é'", true],
  ["contains('groß', 'SS')", false],
  ["startsWith('ßa', 'ss')", false],
  ["endsWith('aß', 'ss')", false],
  ["contains('Grüße', 'GRÜ')", true],
  ["contains(fromJSON('[\"ß\",3]'), 'SS')", false],
  ["contains(fromJSON('[\"ß\",3]'), '0x3')", true],
  ['contains(fromJSON(\'["0b11"]\'), 3)', false],
  ["'0b11' == 3", false],
  ["'0xFFFFFFFF' == -1", true],
  ["'0xFFFFFFFF' == 4294967295", false],
  ['0xFFFFFFFF == -1', true],
  ["'' == 0", true],
  ["'infinity' == Infinity", true],
  ['null == false', true],
  ["'abc' == NaN", false],
  ["'b' > 'A'", true],
  ["'a' >= 'A'", true],
  ["'a' < 'A'", false],
  ['true > false', true],
  ['null < null', false],
  ['null <= null', true],
  ["'0o17' > 14", true],
  ["fromJSON('[1]') == fromJSON('[1]')", false],
  ['github == github', true],
])('%s is %j', async (source, value) => {
  expect(await valueOf(source, { github: {} })).toBe(value);
});

test.each<[string, string]>([
  ["format('{0} {1} {2}', 0.00001, 1e15, 1234567890123456)", '1E-05 1E+15 1.23456789012346E+15'],
  ["join(fromJSON('[0.00001,1e15,\"x\"]'), ' ')", '1E-05 1E+15 x'],
  ['toJSON(NaN)', 'NaN'],
  ["toJSON(fromJSON('[0.00001,1e15,-0,[],{}]'))", '[\n  1E-05,\n  1E+15,\n  0,\n  [],\n  {}\n]'],
  ["toJSON('a\"\\\n\u2028')", '"a\\"\\\\\\n\\u2028"'],
  ['toJSON(null)', 'null'],
])('%s is the text %j', async (source, text) => {
  expect(await valueOf(source)).toBe(text);
});

test('a number in a mapping of texts is written as in an expression', async () => {
  expect(await evaluateText({ kind: 'literal', value: 0.000_01, at }, { contexts: {} })).toBe(
    '1E-05',
  );
});

const ORDERED = '{"10":"a","9":"b","x":"c","1":{"2":1,"1":2}}';

test.each<[string, string]>([
  ["join(fromJSON('%').*, ' ')", 'a b c Object'],
  ["join(fromJSON('%').*.*, ' ')", '1 2'],
  ["join(fromJSON('[%]').*['1'].*, ' ')", '1 2'],
  [
    "toJSON(fromJSON('%'))",
    '{\n  "10": "a",\n  "9": "b",\n  "x": "c",\n  "1": {\n    "2": 1,\n    "1": 2\n  }\n}',
  ],
])('keys that look like whole numbers keep their order: %s', async (template, text) => {
  expect(await valueOf(template.replace('%', ORDERED))).toBe(text);
});

test('so do the keys of a mapping of the file, with what is inserted', async () => {
  const literal = (value: JsonValue & (string | number)): Template => ({
    kind: 'literal',
    value,
    at,
  });
  const mapping: Template = {
    kind: 'mapping',
    at,
    entries: [
      { key: literal('7'), value: literal('a') },
      {
        key: { kind: 'expression', source: 'insert', at },
        value: { kind: 'expression', source: `fromJSON('{"6":"b","5":"c"}')`, at },
      },
      { key: literal('4'), value: literal('d') },
    ],
  };
  const matrix = (await evaluateTemplate(mapping, { contexts: {} })) as JsonObject;
  expect(await valueOf("join(matrix.*, ' ')", { matrix })).toBe('a b c d');
});

test('keys that differ by case are one: the first spelling, the last value', async () => {
  const json = `fromJSON('{"Key":1,"other":2,"KEY":3}')`;
  expect(await valueOf(`toJSON(${json})`)).toBe('{\n  "Key": 3,\n  "other": 2\n}');
  expect(await valueOf(`${json}.key`)).toBe(3);
  expect(await valueOf(json)).toEqual({ Key: 3, other: 2 });
  const github = { event: { Name: 'a', name: 'b' } };
  expect(await valueOf('toJSON(github.event)', { github })).toBe('{\n  "Name": "b"\n}');
  expect(await valueOf(`join(github.event.*, ' ')`, { github })).toBe('b');
});

test('variables in env are told apart by case', async () => {
  const env = { NAME: 'a', name: 'b', Other: 'c' };
  expect(await valueOf(`format('{0} {1} {2}', env.NAME, env.name, env.other)`, { env })).toBe(
    'a b ',
  );
  expect(await valueOf('toJSON(ENV)', { env })).toBe(JSON.stringify(env, null, 2));
  expect(await valueOf('env == env', { env })).toBe(true);
});

test('__proto__ is a key like others', async () => {
  const json = `fromJSON('{"__proto__":{"a":1},"a":2}')`;
  expect(await valueOf(`${json}.__proto__.a`)).toBe(1);
  expect(await valueOf(`fromJSON('{}').__proto__`)).toBeNull();
  expect(await valueOf(`toJSON(${json})`)).toBe(
    '{\n  "__proto__": {\n    "a": 1\n  },\n  "a": 2\n}',
  );
});

test.each<[string, string]>([
  ['fromJSON(env.NONE)', "Error from function 'fromJSON': empty input (env.NONE)"],
  ["fromJSON(steps['a'].outputs.b)", '(steps.a.outputs.b)'],
  [
    "fromJson('[1')",
    "'fromJson': Error parsing JSON when evaluating fromJson: line 1: a ] is missing",
  ],
  ['toJSON(fromJSON(env.NONE))', "Error from function 'fromJSON': empty input (env.NONE)"],
])('%s says which function got what', async (source, message) => {
  await expect(valueOf(source, { env: {}, steps: {} })).rejects.toThrow(message);
});

test.each(['0b11', '0X1', '1_0', '0x1FFFFFFFF'])('%s is no literal', async (source) => {
  await expect(valueOf(`${source} == 1`)).rejects.toThrow(
    `Unexpected symbol: '${source}'. Located at position 1`,
  );
});
