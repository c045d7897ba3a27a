import { askNumber, askText, type CelQuestion, Draft, type Draw } from './draft.ts';

const TEXTS = [
  '',
  'a',
  'abc',
  'aXc',
  'ABC',
  'a.c',
  'a\nb',
  'é',
  'e\u0301',
  'ß',
  '\u{1f600}',
  'a\u{1f600}b',
  '\ufffd',
  '\uffff',
  '\u{10000}',
  '\ud7ff',
  '\ue000',
  'x\u0000y',
  'true',
  'k\u212a',
];
/** Literals as they are written, with what they may say. */
const LITERALS: readonly (readonly [written: string, says: string])[] = [
  [String.raw`"\u00e9"`, 'é'],
  [String.raw`"\U0001F600"`, '\u{1f600}'],
  [String.raw`"\x41\101"`, 'AA'],
  [String.raw`"\a\b\f\n\r\t\v"`, '\u0007\b\f\n\r\t\v'],
  [String.raw`"\?\'\"\\"`, `?'"\\`],
  ["'\\`'", '`'],
  [String.raw`r"\n"`, '\\n'],
  [String.raw`R'a\'`, 'a\\'],
  [String.raw`r"\u0041"`, '\\u0041'],
  [`"""a"b"""`, 'a"b'],
  [`'''a\nb'''`, 'a\nb'],
  [String.raw`r'''a\nb'''`, 'a\\nb'],
  [`"a" + 'b'`, 'ab'],
  [String.raw`"\d"`, 'd'],
  [String.raw`"\uD83D\uDE00"`, '\u{1f600}'],
  [String.raw`"\ud800"`, '\ufffd'],
  [String.raw`"\U00110000"`, ''],
  [String.raw`"\X41"`, 'A'],
  [String.raw`"\377"`, 'ÿ'],
  [String.raw`"\400"`, ''],
  [`"a\tb"`, 'a\tb'],
  [`"a\nb"`, 'a\nb'],
  ['string(b"abc")', 'abc'],
  [String.raw`string(b"\303\277")`, 'ÿ'],
  [String.raw`string(b"\xff")`, '\ufffd'],
  [String.raw`string(b"\u00ff")`, 'ÿ'],
  ['string(bytes("\u{1f600}"))', '\u{1f600}'],
  [String.raw`string(rb"\x41")`, '\\x41'],
  [String.raw`string(br"\x41")`, '\\x41'],
  [String.raw`string(b'''\x41''')`, 'A'],
];
const PATTERNS = [
  ...'^a a$ ^a.c$ a|b [a-c]+ (?i)abc (?i)ABC (?s)a.b a.b ^$ . ^.$ ^..$ \\d \\w+ \\W \\s \\bab* a{2} a{2,} a{,2} a{1001} (a (?P<n>a) (?<n>a) (?=a) (?!a) (?:a) a++ a*? \\p{L} \\p{Greek} \\pL \\p{Foo} [[:alpha:]] [^[:alpha:]] \\x{e9} \\u00e9 é \\Qa.c\\E \\C \\z \\Z \\A (?U)a+ (?m)^b \\R \\h [\\d] [a-\\d] \\1 ( ) * + ? [] [^] {} a{ a{1 \\ (?x)a (?i)ß (?i)ſ (?i)k'.split(
    ' ',
  ),
  '',
  '\u{1f600}',
  '[\u{1f600}]',
  '^\u{1f600}?$',
];
const CLOSINGS = ['', ' // ends it', '\n// ends it', ' // a "quote', ' // a { brace', '\n', ' //'];

/** The methods of texts. */
export function textMethod(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const [one, other] = [draw.pick(TEXTS), draw.pick(TEXTS)];
  const [a, b] = [draft.text(one), draft.text(other)];
  switch (draw.below(6)) {
    case 0: {
      const lengths = [Array.from(one).length, one.length, new TextEncoder().encode(one).length];
      const made = draw.pick([
        `size(${a})`,
        `${a}.size()`,
        `size(bytes(${a}))`,
        `bytes(${a}).size()`,
      ]);
      return draft.question('size of a text', askNumber(draw, made, lengths.map(String)));
    }
    case 1:
      return draft.question('order of texts', `${a} ${draw.pick(['<', '<=', '>', '>='])} ${b}`);
    case 2:
      return draft.question('order of bytes', `bytes(${a}) ${draw.pick(['<', '>='])} bytes(${b})`);
    case 3: {
      const plausible = [one + other, other + one];
      return draft.question('joined texts', askText(draw, `(${a} + ${b})`, plausible));
    }
    default: {
      const method = draw.pick(['contains', 'startsWith', 'endsWith']);
      return draft.question('parts of a text', `${a}.${method}(${b})`);
    }
  }
}

/** Patterns, in both forms of the call. */
export function pattern(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const [text, sought] = [draft.text(draw.pick(TEXTS)), draft.text(draw.pick(PATTERNS))];
  const asked = draw.chance(0.5) ? `${text}.matches(${sought})` : `matches(${text}, ${sought})`;
  return draft.question('pattern', asked);
}

/** How literals are written, and what stands around an expression. */
export function literal(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const [written, says] = draw.pick(LITERALS);
  const asked = draw.chance(0.5)
    ? `(${written}) == ${draft.parameter('string', says)}`
    : askText(draw, `(${written})`, [says, says.toUpperCase()]);
  return draft.question('literal', `${asked}${draw.pick(CLOSINGS)}`);
}

/** Bytes against texts and each other. */
export function bytes(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const made = (): string => {
    return draw.pick([
      `bytes(${draft.text(draw.pick(TEXTS))})`,
      'b"abc"',
      String.raw`b"\xff\x00"`,
      'b""',
      'b"é"',
    ]);
  };
  const [a, b] = [made(), made()];
  const asked = draw.pick([
    `${a} == ${b}`,
    `${a} != ${b}`,
    `${a} < ${b}`,
    `(${a} + ${b}).size() == ${draw.below(6)}`,
    `string(${a}) == string(${b})`,
    `string(${a} + ${b}).size() > ${draw.below(4)}`,
    `${a} in [${b}]`,
    `string(${a}) == ${draft.text(draw.pick(TEXTS))}`,
  ]);
  return draft.question('bytes', asked);
}
