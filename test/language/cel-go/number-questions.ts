import { askNumber, askText, type CelQuestion, Draft, type Draw } from './draft.ts';

const DOUBLES =
  '0 -0 1 -1 0.1 0.5 1.5 100000 123456 1e6 -1e6 1234567 1234567.5 12345678 1e5 1e-4 1e-5 0.00012345 0.000012345 1e15 1e16 1e17 1e20 1e21 1e22 123456789012345680000 1e-7 1e-6 5e-324 1.7976931348623157e308 2.5 3.5 -2.5 9007199254740993 9223372036854775807 9223372036854775000 1.8446744073709552e19 -9223372036854775808 0.30000000000000004 1e100 3.0000000000000004 2147483648 4294967296'.split(
    ' ',
  );
const INTS =
  '0 1 -1 2 -2 7 -7 10 1000 4503599627370497 9007199254740991 9007199254740993 9223372036854775807 -9223372036854775808 -9223372036854775807 4611686018427387904 3037000500 -3037000500'.split(
    ' ',
  );
const UINTS =
  '0u 1u 2u 7u 10u 9223372036854775807u 9223372036854775808u 18446744073709551615u'.split(' ');
/** Spellings that readers of numbers do not agree about. */
const NUMBER_TEXTS = [
  ...'0 1 -1 +1 01 -0 +0 007 1e3 1E3 1e+3 1.0 1. .5 5. -.5 +.5 0x10 0X1F 0x1p4 0b11 0o17 1_000 1__0 _1 1u 1.5 1e400 -1e400 1e-400 4.9e-324 2e-324 1e308 NaN nan NAN +NaN -NaN Inf inf INF +Inf -Inf Infinity infinity -infinity INFINITY infinit 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 99999999999999999999 00000000000000000000001 1e 1e+ e1 . - + --1 0x 0x1 1,5 true ١'.split(
    ' ',
  ),
  '',
  ' ',
  ' 1',
  '1 ',
  '1\n',
  '\t1',
  '1 000',
  '−1',
  '1\u00a0',
];
const BOOL_TEXTS =
  't T f F true TRUE True tRUE false FALSE False fALSE 1 0 yes no on off TrUe y n truE 2 10 01'.split(
    ' ',
  );

/** A double as JavaScript prints it, as strconv does with 'g', and as fmt does with %g. */
function printedDoubles(value: number): string[] {
  if (!Number.isFinite(value))
    return [String(value), '+Inf', '-Inf', 'NaN', 'Infinity', '+infinity'];
  const sign = Object.is(value, -0) ? '-' : '';
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  const places = Number(exponent);
  const padded = `${exponent.charAt(0)}${exponent.slice(1).padStart(2, '0')}`;
  const scientific = `${sign}${mantissa}e${padded}`;
  const plain = Math.abs(places) < 22 ? value.toLocaleString('en', PLAIN) : String(value);
  const go = places < -4 || places >= 21 ? scientific : `${sign}${plain.replace(/^-(?=0$)/, '')}`;
  return [String(value), scientific, go, plain, `${value}.0`, value.toFixed(6)];
}
const PLAIN = { useGrouping: false, maximumSignificantDigits: 17 } as const;

function randomDouble(draw: Draw): string {
  if (draw.chance(0.6)) return draw.pick(DOUBLES);
  const mantissa = `${draw.pick(['', '-'])}${1 + draw.below(9)}.${draw.digits(draw.below(17)) || '0'}`;
  return String(Number(`${mantissa}e${draw.below(50) - 25}`));
}

/** A double of a literal, of a parameter, or of a sum that is none. */
function doubleOf(draft: Draft, text: string): string {
  const { draw } = draft;
  const literal = /[.e]/.test(text) ? text : `${text}.0`;
  const isSafe = Number.isFinite(Number(text)) && text !== '-0';
  const way = draw.below(isSafe ? 5 : 2);
  if (way === 0) return text.startsWith('-') ? `(${literal})` : literal;
  if (way === 1) return `double(${draft.text(text)})`;
  if (way === 2) return `double(dyn(${draft.parameter('double', Number(text))}))`;
  return draft.parameter('double', Number(text));
}

/** Ints come as numbers and as texts, as far as a peer reads them. */
export function intParameter(draft: Draft, text: string): string {
  const { draw } = draft;
  const number = Number(text);
  if (!Number.isSafeInteger(number)) return draft.parameter('int', text);
  const spellings = [number, number, number, number, number, text, text, `${text}.0`, `${text}e0`];
  if (number !== 0 && number % 1000 === 0)
    spellings.push(`${number / 1000}e3`, `${number / 100}E2`);
  if (number >= 0) spellings.push(`+${text}`, `0${text}`);
  return draft.parameter('int', draw.pick(spellings));
}

function intOf(draft: Draft, text: string): string {
  if (draft.draw.chance(0.4)) return intParameter(draft, text);
  return text.startsWith('-') && draft.draw.chance(0.5) ? `(${text})` : text;
}

/** string() of numbers. */
export function printedNumber(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const text = randomDouble(draw);
  const kind = draw.below(10);
  if (kind < 7) {
    const printed = `string(${doubleOf(draft, text)})`;
    return draft.question(
      'string of a double',
      askText(draw, printed, printedDoubles(Number(text))),
    );
  }
  if (kind === 7) {
    const special = draw.pick(['NaN', 'Infinity', '-Infinity', 'inf', '-inf']);
    const literal = draw.pick(['(0.0 / 0.0)', '(1.0 / 0.0)', '(-1.0 / 0.0)']);
    const made = draw.chance(0.3) ? literal : `double(${draft.text(special)})`;
    const value = Number(special.replace('inf', 'Infinity'));
    return draft.question(
      'string of a double',
      askText(draw, `string(${made})`, printedDoubles(value)),
    );
  }
  const int = draw.pick(INTS);
  const uint = draw.pick(UINTS);
  return kind === 8
    ? draft.question(
        'string of an int',
        askText(draw, `string(${intOf(draft, int)})`, [int, `+${int}`]),
      )
    : draft.question(
        'string of a uint',
        askText(draw, `string(${uint})`, [uint, uint.slice(0, -1)]),
      );
}

/** Texts that are read as a number or a bool. */
export function readNumber(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const [name, texts] = draw.pick([
    ['int', NUMBER_TEXTS],
    ['uint', NUMBER_TEXTS],
    ['double', NUMBER_TEXTS],
    ['double', NUMBER_TEXTS],
    ['bool', BOOL_TEXTS],
  ] as const);
  const text = draw.pick(texts);
  const read = `${name}(${draft.text(text)})`;
  if (name === 'bool') return draft.question('bool of a text', draw.pick([read, `!${read}`]));
  const numbers = [Number(text), Number.parseInt(text, 10), Number(text.replaceAll('_', '')), 1]
    .filter((one) => Number.isFinite(one) && Math.abs(one) < 1e15)
    .map((one) => (name === 'double' ? one : Math.trunc(one)))
    .map((one) =>
      name === 'uint' ? `${Math.abs(one)}u` : name === 'int' ? `${one}` : doubleLiteral(one),
    );
  const asked = draw.chance(0.2) ? `${read} == ${read}` : askNumber(draw, read, numbers);
  return draft.question(`${name} of a text`, asked);
}

function doubleLiteral(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** Numbers that become numbers of another kind. */
export function convertedNumber(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const to = draw.pick(['int', 'uint', 'double']);
  const from = draw.below(3);
  const text = from === 0 ? randomDouble(draw) : draw.pick(from === 1 ? INTS : UINTS);
  const made = from === 0 ? doubleOf(draft, text) : from === 1 ? intOf(draft, text) : text;
  const near = Number(text.replace('u', ''));
  const whole = Number.isFinite(near) && Math.abs(near) < 1e15 ? [near, near + 1, near - 1] : [0];
  const plausible = whole
    .flatMap((one) => [Math.trunc(one), Math.round(one), Math.floor(one)])
    .map((one) => (to === 'int' ? `${one}` : to === 'uint' ? `${Math.abs(one)}u` : `${one}.0`));
  return draft.question(`${to} of a number`, askNumber(draw, `${to}(${made})`, plausible));
}

/** Sums and the like, at the ends of their range. */
export function arithmetic(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const sign = draw.pick(['+', '-', '*', '/', '%']);
  const kind = draw.below(5);
  if (kind < 3) {
    const [a, b] = [draw.pick(INTS), draw.pick(INTS)];
    const made = draw.chance(0.1)
      ? `-(${intOf(draft, a)})`
      : `${intOf(draft, a)} ${sign} ${intOf(draft, b)}`;
    return draft.question(
      'arithmetic of ints',
      askNumber(draw, `(${made})`, [...INTS, '-3', '3', '5']),
    );
  }
  if (kind === 3) {
    const made = `(${draw.pick(UINTS)} ${sign} ${draw.pick(UINTS)})`;
    return draft.question('arithmetic of uints', askNumber(draw, made, UINTS));
  }
  const [a, b] = [randomDouble(draw), randomDouble(draw)];
  const signs = draw.pick(['+', '-', '*', '/']);
  const made = `(${doubleOf(draft, a)} ${signs} ${doubleOf(draft, b)})`;
  const value = signs === '+' ? Number(a) + Number(b) : signs === '*' ? Number(a) * Number(b) : 0;
  const plausible = [value, 0, 1].filter(Number.isFinite).map(doubleLiteral);
  return draft.question('arithmetic of doubles', askNumber(draw, made, plausible));
}

/** Orders and equalities across the kinds of numbers. */
export function comparison(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const value = (): string => {
    const kind = draw.below(4);
    if (kind === 0) return intOf(draft, draw.pick(INTS));
    if (kind === 1) return draw.pick(UINTS);
    if (kind === 2) return doubleOf(draft, randomDouble(draw));
    return draw.pick(['(0.0 / 0.0)', '(1.0 / 0.0)', '9223372036854775807.0', '-0.0', '2.0', '7.0']);
  };
  const sign = draw.pick(['<', '<=', '>', '>=', '==', '!=']);
  return draft.question('comparison of numbers', `dyn(${value()}) ${sign} dyn(${value()})`);
}
