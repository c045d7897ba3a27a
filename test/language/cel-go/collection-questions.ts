import { type CelQuestion, Draft, type Draw } from './draft.ts';
import { intParameter } from './number-questions.ts';

const VALUES =
  '1 2 0 -1 1u 2u 1.0 2.0 1.5 -0.0 0.0 (0.0/0.0) true false null "1" "a" b"a" [1] [1.0] [] {} {1:1} {1.0:1} {1u:1} {"a":1} [null] timestamp(1) timestamp("1970-01-01T00:00:01Z") duration("1s") duration("1000ms") int type(1) [(0.0/0.0)] 9007199254740993 9007199254740992.0 9223372036854775807 9223372036854775808u 9223372036854775807.0'.split(
    ' ',
  );
const JSON_VALUES = [
  1,
  2,
  0,
  -1,
  1.5,
  1e21,
  true,
  false,
  null,
  'a',
  '1',
  '',
  [1],
  [],
  {},
  { a: 1 },
  [[1]],
  { a: null },
];
const KEYS = [
  '0',
  '1',
  '-1',
  '2',
  '0u',
  '1u',
  '0.0',
  '1.0',
  '1.5',
  '"a"',
  '"b"',
  'true',
  'null',
  '(0.0/0.0)',
];
const ERRORS = [
  '1 / 0 == 0',
  '[1][5] == 1',
  '{"a": 1}.b == 1',
  '{"a": 1}["b"] == 1',
  '"a".matches("(")',
  'dyn("a") > dyn(1)',
  'dyn("a") && true',
  '!dyn(1)',
];
const MACROS = ['all', 'exists', 'exists_one'];
const TYPES =
  'int uint double bool string bytes list map null_type type google.protobuf.Timestamp google.protobuf.Duration'.split(
    ' ',
  );

function listOf(draw: Draw, values: readonly string[] = VALUES): string {
  const items = Array.from({ length: draw.below(4) }, () => draw.pick(values));
  return `[${items.join(', ')}]`;
}

function mapOf(draw: Draw): string {
  const entries = Array.from(
    { length: draw.below(3) },
    () => `${draw.pick(KEYS)}: ${draw.pick(VALUES)}`,
  );
  return `{${entries.join(', ')}}`;
}

/** Equality of values of any kind. */
export function equality(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const value = (): string => {
    const kind = draw.below(5);
    if (kind === 0) return draft.parameter('any', draw.pick(JSON_VALUES));
    if (kind === 1) return `dyn(${listOf(draw)})`;
    if (kind === 2) return `dyn(${mapOf(draw)})`;
    return `dyn(${draw.pick(VALUES)})`;
  };
  const sign = draw.pick(['==', '==', '==', '!=', '<', '>=', 'in']);
  const right = sign === 'in' ? draw.pick([listOf(draw), mapOf(draw), value()]) : value();
  return draft.question('equality', `${value()} ${sign} ${right}`);
}

/** Elements of lists and maps, and whether there are any. */
export function element(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const key = draw.pick(KEYS);
  const dynKey = `dyn(${key})`;
  const json = { a: draw.pick(JSON_VALUES), c: 1 };
  const container = draw.pick([
    () => listOf(draw),
    () => mapOf(draw),
    () => draft.parameter('any', draw.pick([json, [1, 2], 'text', null, 3])),
    () => draft.parameter('list<int>', [1, '2', 3]),
    () => draft.parameter('map<int>', { a: 1, b: '2' }),
    () => draft.parameter('map<any>', json),
    () => draft.parameter('list<string>', ['a', 'b']),
  ])();
  const asked = draw.pick([
    `${container}[${dynKey}] == ${draw.pick(VALUES)}`,
    `${container}[${key}] == ${draw.pick(VALUES)}`,
    `${dynKey} in ${container}`,
    `${key} in ${container}`,
    `has(${container}.a)`,
    `has(${container}.b) || ${container}.a == 1`,
    `dyn(${container}).a == 1`,
    `has(dyn(${container}).a.b)`,
    `size(${container}) == ${draw.below(4)}`,
    `dyn(${container}).size() == ${draw.below(4)}`,
    `dyn(${container})[${dynKey}] == dyn(${draw.pick(VALUES)})`,
  ]);
  return draft.question('element', asked);
}

/** Macros over lists and maps, with errors in some of their turns. */
export function macro(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const range = draw.pick([
    () => listOf(draw, ['0', '1', '2', '3', '-1']),
    () => draft.parameter('list<int>', [0, 1, '2', 3]),
    () => draft.parameter('list<string>', ['a', 'b', '', 'ab']),
    () => draft.parameter('map<int>', { a: 1, b: 0 }),
    () =>
      `dyn(${draft.parameter('any', draw.pick([[1, 0, 2], { a: 1, b: 2 }, 'text', null, [0]]))})`,
    () => draft.parameter('map<any>', { a: [1], b: null }),
    () => mapOf(draw),
    () => '[1, 2, 3, 0]',
    () => '[]',
  ])();
  const test = draw.pick([
    'x == 1',
    'x > 0',
    '1 / x == 1',
    'dyn(x) == "a"',
    'x != x',
    'true',
    'x in [1, 2]',
    'dyn(x) > 1',
    '10 / x > 4',
    'x.startsWith("a")',
    '[1, x].all(y, y >= x)',
    '[x].exists(x, x == 1)',
  ]);
  const made = draw.pick(['x', 'x + 1', '1 / x', '[x]', 'dyn(x)', 'string(x)']);
  const asked = draw.pick([
    `${range}.${draw.pick(MACROS)}(x, ${test})`,
    `${range}.${draw.pick(MACROS)}(x, ${test})`,
    `${range}.map(x, ${made}).size() == ${draw.below(5)}`,
    `${range}.map(x, ${test}, ${made}).size() == ${draw.below(5)}`,
    `${range}.filter(x, ${test}).size() == ${draw.below(5)}`,
    `${range}.filter(x, ${test}) == ${listOf(draw, ['1', '2'])}`,
    `${draw.pick(['1', '2', '[1]', '"1"'])} in dyn(${range}.map(x, ${made}))`,
    // Not of maps, whose keys come in any order there.
    `[1, 2, 0].map(x, ${made}) == [1, 2, 0].map(y, y)`,
    `!${range}.exists(x, ${test}) && ${range}.all(x, !(${test}))`,
  ]);
  return draft.question('macro', asked);
}

/** What is decided although a part of it fails. */
export function logic(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const part = (depth: number): string => {
    const kind = draw.below(depth > 2 ? 3 : 7);
    if (kind === 0) return draw.pick(ERRORS);
    if (kind === 1) return draw.chance(0.3) ? 'true' : draft.parameter('bool', draw.chance(0.5));
    if (kind === 2)
      return `${intParameter(draft, draw.pick(['0', '1', '1000']))} ${draw.pick(['<', '=='])} 1`;
    if (kind === 3) return `!(${part(depth + 1)})`;
    if (kind === 4) return `((${part(depth + 1)}) ? (${part(depth + 1)}) : (${part(depth + 1)}))`;
    return `(${part(depth + 1)} ${draw.pick(['&&', '||'])} ${part(depth + 1)})`;
  };
  return draft.question('logic', part(0));
}

/** type(), and conversions of values whose type is known only when they are there. */
export function dynamic(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const value = draw.chance(0.5)
    ? draft.parameter('any', draw.pick(JSON_VALUES))
    : `dyn(${draw.pick(VALUES)})`;
  const to = draw.pick([
    'int',
    'uint',
    'double',
    'string',
    'bool',
    'bytes',
    'timestamp',
    'duration',
    'dyn',
    'type',
  ]);
  const asked = draw.pick([
    `type(${value}) == ${draw.pick(TYPES)}`,
    `type(${value}) == type(dyn(${draw.pick(VALUES)}))`,
    `${to}(${value}) == ${to}(dyn(${draw.pick(VALUES)}))`,
    `string(${value}) == ${draw.pick(['"1"', '"1.0"', '"true"', '"a"', '"null"', '"0"', '"-0"', '"1s"', '"1.5"'])}`,
    `type(type(${value})) == type`,
    `-${value} == ${draw.pick(VALUES)}`,
    `${value} + ${value} == dyn(${draw.pick(VALUES)})`,
    `${value} ? true : false`,
    `!${value}`,
    `${value} && true`,
    `size(${value}) == ${draw.below(3)}`,
    `${value}.size() == ${draw.below(3)}`,
  ]);
  return draft.question('dynamic', asked);
}

const SPELLINGS: readonly (readonly [
  type: string,
  values: readonly unknown[],
  asked: (name: string) => string,
])[] = [
  [
    'int',
    [
      1,
      1.5,
      '1',
      '1.0',
      '1e3',
      '1000.0',
      '0x10',
      '1.5',
      ' 1',
      '',
      '+1',
      '-1',
      '01',
      '1_000',
      '9223372036854775807',
      '9223372036854775808',
      '9007199254740993',
      9007199254740992,
      1e18,
      1e19,
      1e300,
      '1e300',
      '1e-3',
      true,
      null,
      'Inf',
      'NaN',
      '-0',
      '1p4',
      '0b1',
      '9223372036854775807.0',
      '9223372036854775806.5',
      '1e19',
    ],
    (p) => `${p} > 5`,
  ],
  [
    'int',
    [
      1,
      '1',
      '1.0',
      '1000.0',
      '1e3',
      '+1',
      '01',
      '-0',
      '1e18',
      1e18,
      '9223372036854775807',
      '-9223372036854775809',
      '1e30',
      1e30,
    ],
    (p) => `string(${p}).size() == 1`,
  ],
  [
    'double',
    [
      1,
      '1',
      '1.5',
      '0.1',
      '0.5',
      '1e3',
      'NaN',
      'Inf',
      '-Inf',
      '+1',
      '1e400',
      '0x10',
      '',
      ' 1',
      true,
      null,
      '9007199254740993',
      '1e-400',
      '.5',
      '5.',
    ],
    (p) => `${p} > 0.75`,
  ],
  ['double', [1e6, '1e6', '1000000', '-0', 1e21], (p) => `string(${p}).size() > 3`],
  ['string', ['a', '', 1, true, null, ['a'], '\u{1f600}'], (p) => `${p} == "a"`],
  ['bool', [true, false, 'true', 1, 0, null, 'T'], (p) => p],
  [
    'timestamp',
    [
      '2024-01-01T00:00:00Z',
      '2024-01-01T00:00:00+02:00',
      1704067200,
      '1704067200',
      '2024-01-01',
      null,
      '2024-01-01t00:00:00z',
      '2024-01-01T00:00:00,5Z',
      '2024-01-01T1:00:00Z',
      '0000-01-01T00:00:00Z',
      '9999-12-31T23:59:59-01:00',
      '2024-01-01T00:00:60Z',
    ],
    (p) => `${p} > timestamp("2020-01-01T00:00:00Z")`,
  ],
  [
    'duration',
    [
      '1s',
      '1h30m',
      5,
      '5',
      '0',
      '.5s',
      '1.s',
      '-1s',
      '+1s',
      '1μs',
      '1µs',
      '1us',
      '',
      '1d',
      'PT1S',
      '9223372036854775807ns',
      '9223372036854775808ns',
      '-9223372036854775808ns',
      '2562048h',
      null,
      { seconds: 1 },
    ],
    (p) => `${p} >= duration("1s")`,
  ],
  [
    'list<int>',
    [[1, '2'], [], ['x'], [1.5], null, 1, { a: 1 }, [null]],
    (p) => `${p}.exists(x, x == 2) || size(${p}) == 0`,
  ],
  ['list<string>', [['a'], ['a', 1], [], 'a', [null]], (p) => `"a" in ${p}`],
  [
    'map<int>',
    [{ a: 1 }, { a: '1' }, { a: 'x' }, {}, [], { '': 1 }, { a: null }],
    (p) => `has(${p}.a) && ${p}.a == 1`,
  ],
  [
    'map<any>',
    [{ a: 1 }, { a: null }, { a: { b: 1 } }, {}],
    (p) => `has(${p}.a) && ${p}.a != null`,
  ],
  ['any', JSON_VALUES, (p) => `${p} == 1 || ${p} == "a" || ${p} == null`],
  [
    'ipaddress',
    [
      '10.0.0.1',
      '::ffff:10.0.0.1',
      '::1',
      'fe80::1%eth0',
      '010.0.0.1',
      '10.0.0',
      '1.2.3.4/8',
      '',
      1,
      '::FFFF:0A00:0001',
    ],
    (p) => `${p}.in_cidr("10.0.0.0/8")`,
  ],
  ['ipaddress', ['10.0.0.1', '::ffff:10.0.0.1', '::1'], (p) => `${p}.in_cidr("::/0")`],
  ['ipaddress', ['10.0.0.1', '::ffff:10.0.0.1'], (p) => `${p}.in_cidr("::ffff:10.0.0.0/104")`],
  [
    'ipaddress',
    ['10.0.0.1', '10.1.2.3'],
    (p) => `${p}.in_cidr("10.1.2.3/8") && !${p}.in_cidr("10.0.0.0/33")`,
  ],
  [
    'ipaddress',
    ['10.0.0.1', '::1', 'fe80::1%eth0', '::ffff:10.0.0.1'],
    (p) => `string(${p}) == "10.0.0.1"`,
  ],
  ['ipaddress', ['10.0.0.1', '::1'], (p) => `${p} == ipaddress("10.0.0.1")`],
];

/** Values of a context as callers spell them, taken or not. */
export function spelling(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const [type, values, asked] = draw.pick(SPELLINGS);
  return draft.question('spelling', asked(draft.parameter(type, draw.pick(values))));
}
