/** Conditions of OpenFGA and SpiceDB: what is rewritten when it is imported, what is refused, and where. */
import { expect, test } from 'vitest';
import { readOpenFgaDsl, readOpenFgaJson } from '../../src/language/openfga/read-openfga-model.ts';
import { importPeerModel, type ImportedModel } from '../../src/language/peers/import-peer-model.ts';
import { readSpiceDbSchema } from '../../src/language/spicedb/read-spicedb-schema.ts';
import { asPeersRead, peerReadings } from '../../src/model/cel/cel-readings.ts';
import { parseParameterType } from '../../src/model/condition-type.ts';

function ofOpenFga(parameters: string, expression: string): ImportedModel {
  const relation = '  relations\n    define viewer: [user with own]';
  const text = `model\n  schema 1.1\ntype user\ntype doc\n${relation}\ncondition own(${parameters}) {\n${expression}\n}\n`;
  return importPeerModel(readOpenFgaDsl(text), { userType: 'user' });
}

function ofSpiceDb(parameters: string, expression: string): ImportedModel {
  const text = `caveat own(${parameters.replaceAll(':', ' ')}) {\n${expression}\n}\ndefinition user {}\ndefinition doc {\n relation viewer: user with own\n}\n`;
  return importPeerModel(readSpiceDbSchema(text), { userType: 'user' });
}

test.each([
  ['d: duration', 'd.getMilliseconds() > 500', 'd.goMilliseconds() > 500'],
  [
    'd: duration',
    '(d + d)\n  // all\n  .getMilliseconds() > 1',
    '(d + d)\n  // all\n  .goMilliseconds() > 1',
  ],
  ['t: timestamp', 't.getMilliseconds() > 500', undefined],
  ['t: timestamp', '(t - t).getMilliseconds() == 0', '(t - t).goMilliseconds() == 0'],
  ['f: double', 'string(f) == "1e+06"', 'goString(f) == "1e+06"'],
  ['f: double', 'string (f) == "string(f)"', 'goString (f) == "string(f)"'],
  ['n: int', 'string(n) == "1" && string(string(n)) == "1"', undefined],
  ['n: int', 'string(double(n)) == string(n)', 'goString(double(n)) == string(n)'],
  ['t: timestamp, d: duration', 'string(t) != string(d)', 'goString(t) != goString(d)'],
  ['d: duration', 'int(d) > 5', 'goInt(d) > 5'],
  ['t: timestamp, f: double', 'int(t) > int(f)', undefined],
  ['l: list<duration>', 'l.all(d, d.getMilliseconds() > 1)', 'l.all(d, d.goMilliseconds() > 1)'],
  ['l: list<double>', 'l.map(f, string(f)) == ["1e+06"]', 'l.map(f, goString(f)) == ["1e+06"]'],
  ['m: map<duration>', 'int(m["a"]) > int(m.b)', 'goInt(m["a"]) > goInt(m.b)'],
  ['s: string', 'matches(s, "^a") // the end', undefined],
])('(%s) %s', (parameters, expression, rewritten = expression) => {
  // The library that reads OpenFGA's language leaves comments out.
  const ofPeers = expression.includes('//') ? [ofSpiceDb] : [ofOpenFga, ofSpiceDb];
  for (const ofPeer of ofPeers) {
    const { document, problems, notes } = ofPeer(parameters, expression);
    expect(problems).toEqual([]);
    expect(document?.conditions?.['own']?.expression).toBe(rewritten);
    const told = notes.filter(({ text }) => text.includes('of the expression')).length;
    expect(told > 0).toBe(rewritten !== expression);
  }
});

test('a call is named with line and column, and with what it is here', () => {
  const { notes } = ofOpenFga('d: duration', 'd > duration("1s") ||\n  d.getMilliseconds() > 500');
  expect(notes[0]).toStrictEqual({
    place: 'condition own (line 7)',
    text: 'line 2, column 4 of the expression: getMilliseconds is goMilliseconds here: cel-go counts all milliseconds of a duration: 90500 of 1m30.5s, which are 500 here',
  });
});

test('what only the evaluation could say is refused, with line and column', () => {
  const text = 'true &&\n dyn(d).getMilliseconds() > 500 &&\n int(x) == 1 && string(x) == "1"';
  const { document, problems } = ofSpiceDb('d: duration, x: any', text);
  expect(document).toBeUndefined();
  expect(problems).toStrictEqual([
    {
      place: 'caveat own (line 1)',
      text: 'line 2, column 8 of the expression: getMilliseconds of a value that may be a duration has no form here: cel-go counts all milliseconds of a duration: 90500 of 1m30.5s, which are 500 here',
    },
    {
      place: 'caveat own (line 1)',
      text: 'line 3, column 2 of the expression: int of a value that may be a duration has no form here: cel-go counts the nanoseconds of a duration, not its seconds',
    },
  ]);
  // Without a duration in it, none comes from a request.
  const taken = ofSpiceDb('x: any', 'int(x) == 1 && string(x) == "1"');
  expect(taken.document?.conditions?.['own']?.expression).toBe('int(x) == 1 && goString(x) == "1"');
});

test('more or longer conditions than a model may have are refused before they are parsed', () => {
  const expression = 'string(f) == "1" || string(f) == "2"';
  const type = { type_name: 'TYPE_NAME_DOUBLE' };
  const imported = (count: number, text: string): ImportedModel => {
    const all = Array.from({ length: count }, (_, i) => `c${i}`);
    const conditions = Object.fromEntries(
      all.map((name) => [name, { name, expression: text, parameters: { f: type } }]),
    );
    const model = { schema_version: '1.1', type_definitions: [{ type: 'doc' }], conditions };
    return importPeerModel(readOpenFgaJson(JSON.stringify(model)), { userType: 'none' });
  };
  expect(imported(256, expression).problems).toEqual([]);
  for (const [count, text, why] of [
    [257, expression, 'holds more than 256 conditions'],
    [17, `${expression} || ${'true || '.repeat(240)}true`, 'more than 32768 characters in all'],
  ] as const) {
    const { problems, notes } = imported(count, text);
    expect(problems[0]?.text).toContain(why);
    // Each that was looked at would be a note.
    expect(notes.filter((one) => one.text.includes('goString'))).toEqual([]);
  }
});

test('an expression that is not valid has no readings, and one that was imported no more', () => {
  const duration = parseParameterType('duration');
  if (duration === undefined) throw new Error('there is no such type');
  const parameters = new Map([['d', duration]]);
  expect(peerReadings('string(d', parameters)).toEqual([]);
  expect(peerReadings('string(d) == 1', parameters)).toEqual([]);
  expect(peerReadings('d.constructor() == string(e)', parameters)).toEqual([]);
  const source = 'string(d) == "1.5s" && int(d) > d.getMilliseconds()';
  const once = asPeersRead(source, peerReadings(source, parameters));
  expect(once).toBe('goString(d) == "1.5s" && goInt(d) > d.goMilliseconds()');
  expect(peerReadings(once, parameters)).toEqual([]);
});
