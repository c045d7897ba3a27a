/** The status of the answer, or that the message is refused as malformed: 400, 431, or 505. */
export type Expected = 200 | 400 | 404 | 405 | 415 | 417 | 431 | 501 | 505 | 'refused';

/** The same behind a request on uWebSockets.js, or that there is no answer, and the connection is closed as one that is idle. */
export type ExpectedLater = Expected | 'unanswered';

/** A message of HTTP/1 and what it is answered with. */
export type Message = {
  readonly name: string;
  readonly text: string;
  /** As the first request of a connection. */
  readonly first: Expected;
  /** As a later one, on uWebSockets.js. */
  readonly later: ExpectedLater;
  /** In any place, where node:http reads all. */
  readonly onNode: Expected;
  /** What is not promised of it; '' where nothing is lost. */
  readonly lost: string;
  /** The answer ends the connection. */
  readonly closes?: true;
};

const BODY = '{"object_id":"a","subject_user_id":"alice"}';
const LINE = 'POST /workspace.v1.AuthzService/Check HTTP/1.1';
const HOST = 'host: x';
const TYPE = 'content-type: application/json';
const LENGTH = `content-length: ${BODY.length}`;
const CHUNKED_BODY = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

/** The usual request with lines of it replaced. */
function withLines(lines: readonly string[], body = BODY, first = LINE): string {
  return `${first}\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}
const extra = (line: string): string => withLines([HOST, TYPE, LENGTH, line]);
const lengths = (...lines: readonly string[]): string => withLines([HOST, TYPE, ...lines]);
const coded = (...values: readonly string[]): string =>
  withLines([HOST, TYPE, ...values.map((v) => `transfer-encoding:${v}`)], CHUNKED_BODY);
const SIZE = BODY.length.toString(16);
const chunked = (body: string): string =>
  withLines([HOST, TYPE, 'transfer-encoding: chunked'], body);
const first = (line: string, body = BODY): string => withLines([HOST, TYPE, LENGTH], body, line);

const MADE_UP = 'PO-ST ';
const CODED = /\r\ntransfer-encoding:/i;

type Row = readonly [
  name: string,
  text: string,
  first: Expected,
  /** Where it is another than `first`. */
  later?: ExpectedLater,
  lost?: string,
];

const ROWS: readonly Row[] = [
  // Served.
  ['the usual', withLines([HOST, TYPE, LENGTH]), 200],
  [
    'upper-case names',
    withLines(['HOST: x', 'CONTENT-TYPE: application/json', LENGTH.toUpperCase()]),
    200,
  ],
  [
    'no space behind colons',
    withLines(['host:x', 'content-type:application/json', LENGTH.replace(' ', '')]),
    200,
  ],
  ['blanks around values', withLines(['host: \t x \t', TYPE, `${LENGTH} \t`]), 200],
  ['an empty value', extra('x-empty:'), 200],
  ['a value with a colon', extra('x-colon: a:b:c'), 200],
  ['a value with a tab', extra('x-tab: a\tb'), 200],
  ['a value of latin-1', extra('x-latin: \u00e9\u00ff'), 200],
  ['a name of all token characters', extra("!#$%&'*+-.^_`|~09az: x"), 200],
  ['two of another name', extra('x-two: a\r\nx-two: b'), 200],
  ['forty fields', extra(Array.from({ length: 40 }, (_, i) => `x-${i}: ${i}`).join('\r\n')), 200],
  ['a long value', extra(`x-long: ${'x'.repeat(4_000)}`), 200],
  ['a length with zeros before', lengths(`content-length: 000${BODY.length}`), 200],
  ['chunked', coded(' chunked'), 200],
  ['chunked in upper case', coded(' CHUNKED'), 200],
  [
    'chunked in pieces',
    withLines(
      [HOST, TYPE, 'transfer-encoding: chunked'],
      `1\r\n{\r\n${(BODY.length - 1).toString(16).toUpperCase()}\r\n${BODY.slice(1)}\r\n0\r\n\r\n`,
    ),
    200,
  ],
  ['a query', first(LINE.replace(' HTTP', '?a=b HTTP')), 200],
  ['a port in Host', withLines(['host: x:8080', TYPE, LENGTH]), 200],
  ['an address in Host', withLines(['host: [::1]:80', TYPE, LENGTH]), 200],
  ['an empty Host', withLines(['host:', TYPE, LENGTH]), 200],
  ['a health check', `GET /healthz HTTP/1.1\r\n${HOST}\r\n\r\n`, 200],
  ['keep-alive', extra('connection: keep-alive'), 200],
  ['an unknown path', first('POST /nowhere HTTP/1.1'), 404],
  ['a wrong verb', `PUT /healthz HTTP/1.1\r\n${HOST}\r\ncontent-length: 0\r\n\r\n`, 405],
  ['a made-up verb', first(LINE.replace('POST', 'PO-ST')), 405],
  ['a wrong type', withLines([HOST, 'content-type: text/plain', LENGTH]), 415],
  // Seldom seen.
  [
    'an absolute target',
    first(LINE.replace(' /', ' http://x/')),
    200,
    'refused',
    'no absolute targets',
  ],
  [
    'an absolute target of https',
    first(LINE.replace(' /', ' https://x:443/')),
    200,
    'refused',
    'no absolute targets',
  ],
  [
    'an absolute target in upper case',
    first(LINE.replace(' /', ' HTTP://X/')),
    200,
    'refused',
    'no absolute targets',
  ],
  ['HTTP/1.0 with Host', first(LINE.replace('1.1', '1.0')), 200, 'refused', 'no HTTP/1.0'],
  [
    'HTTP/1.0 without Host',
    withLines([TYPE, LENGTH], BODY, LINE.replace('1.1', '1.0')),
    200,
    'refused',
    'no HTTP/1.0',
  ],
  [
    'HTTP/1.0 with keep-alive',
    withLines([HOST, TYPE, LENGTH, 'connection: keep-alive'], BODY, LINE.replace('1.1', '1.0')),
    200,
    'refused',
    'no HTTP/1.0',
  ],
  [
    'an empty line before',
    `\r\n${withLines([HOST, TYPE, LENGTH])}`,
    200,
    'unanswered',
    'no empty lines',
  ],
  // Chunk extensions and trailers (RFC 9112 §§7.1.1, 7.1.2).
  [
    'an extension of a chunk',
    chunked(`${SIZE};ext=1\r\n${BODY}\r\n0\r\n\r\n`),
    200,
    'refused',
    'no extensions',
  ],
  [
    'an extension without a value',
    chunked(`${SIZE};e\r\n${BODY}\r\n0\r\n\r\n`),
    200,
    'unanswered',
    'no extensions',
  ],
  [
    'an extension in quotes',
    chunked(`${SIZE} ; a="b;c" ;d=e\r\n${BODY}\r\n0;end\r\n\r\n`),
    'refused',
    'refused',
    'no blanks before extensions',
  ],
  [
    'an extension like a size',
    chunked(`${SIZE};ff=ff\r\n${BODY}\r\n0;ff\r\n\r\n`),
    200,
    'unanswered',
    'no extensions',
  ],
  ['zeros before a size', chunked(`0000${SIZE}\r\n${BODY}\r\n000\r\n\r\n`), 200],
  [
    'a trailer field',
    chunked(`${SIZE}\r\n${BODY}\r\n0\r\nx-sum: 1\r\n\r\n`),
    200,
    'refused',
    'no trailers',
  ],
  [
    'trailer fields that are none of the head',
    chunked(`${SIZE}\r\n${BODY}\r\n0\r\ncontent-length: 1\r\nhost: y\r\n\r\n`),
    'refused',
    'refused',
    'no trailers with such names',
  ],
  ['a chunk without a size', chunked(`\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  [
    'an extension in place of a size',
    chunked(`;a=b\r\n${BODY}\r\n0\r\n\r\n`),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['a size with a sign', chunked(`+${SIZE}\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  ['a size with 0x', chunked(`0x${SIZE}\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  [
    'a size of another letter',
    chunked(`${SIZE}g\r\n${BODY}\r\n0\r\n\r\n`),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['a size beyond all', chunked(`${'f'.repeat(17)}\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  [
    'a size that ends with LF',
    chunked(`${SIZE}\n${BODY}\r\n0\r\n\r\n`),
    'refused',
    200,
    'bare LF is taken',
  ],
  [
    'an extension that ends with LF',
    chunked(`${SIZE};a\n${BODY}\r\n0\r\n\r\n`),
    'refused',
    'unanswered',
    'no answer',
  ],
  [
    'an extension with NUL',
    chunked(`${SIZE};a\0\r\n${BODY}\r\n0\r\n\r\n`),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['a chunk longer than its size', chunked(`1\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  ['long extensions', chunked(`${SIZE};${'a'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`), 'refused'],
  [
    'long trailers',
    chunked(`${SIZE}\r\n${BODY}\r\n0\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`),
    'refused',
  ],
  [
    'a trailer that is no field',
    chunked(`${SIZE}\r\n${BODY}\r\n0\r\nGET /healthz HTTP/1.1\r\n\r\n`),
    'refused',
    200,
    'trailers are not looked at',
  ],
  [
    'HTTP/1.0 in chunks',
    withLines([HOST, TYPE, 'transfer-encoding: chunked'], CHUNKED_BODY, LINE.replace('1.1', '1.0')),
    'refused',
  ],
  // Who asks?
  ['two credentials', extra('authorization: Bearer a\r\nauthorization: Bearer b'), 'refused'],
  ['two equal credentials', extra('Authorization: Bearer a\r\nauthorization: Bearer a'), 'refused'],
  // Where does the message end?
  ['two lengths, the second longer', lengths(LENGTH, 'content-length: 99'), 'refused'],
  ['two lengths, the second shorter', lengths(LENGTH, 'content-length: 1'), 'refused'],
  ['two lengths, the first zero', lengths('content-length: 0', LENGTH), 'refused'],
  ['two equal lengths', lengths(LENGTH, LENGTH), 'refused'],
  ['two lengths, far apart', lengths(LENGTH, 'x-a: b', 'x-c: d', 'Content-Length: 3'), 'refused'],
  ['an empty first length', lengths('content-length:', LENGTH), 'refused'],
  ['an empty second length', lengths(LENGTH, 'content-length:'), 'refused'],
  ['an empty length alone', lengths('content-length:'), 'refused'],
  ['a length with a plus', lengths(`content-length: +${BODY.length}`), 'refused'],
  ['a length with a minus', lengths('content-length: -1'), 'refused'],
  ['a length in hex', lengths('content-length: 0x2b'), 'refused'],
  ['a length with a point', lengths(`content-length: ${BODY.length}.0`), 'refused'],
  ['a list of lengths', lengths(`content-length: ${BODY.length}, ${BODY.length}`), 'refused'],
  ['a length beyond all', lengths(`content-length: ${'9'.repeat(30)}`), 'refused'],
  ['a length with a blank', lengths('content-length: 4 3'), 'refused'],
  [
    'a length and chunked',
    withLines([HOST, TYPE, LENGTH, 'transfer-encoding: chunked'], CHUNKED_BODY),
    'refused',
  ],
  [
    'chunked and a length',
    withLines([HOST, TYPE, 'transfer-encoding: chunked', LENGTH], CHUNKED_BODY),
    'refused',
  ],
  [
    'chunked and an empty length',
    withLines([HOST, TYPE, 'transfer-encoding: chunked', 'content-length:'], CHUNKED_BODY),
    'refused',
  ],
  [
    'a length and an empty encoding',
    withLines([HOST, TYPE, LENGTH, 'transfer-encoding:']),
    'refused',
  ],
  ['an unknown encoding', coded(' xchunked'), 'refused'],
  ['an empty encoding', coded(''), 'refused'],
  ['gzip', coded(' gzip'), 'refused'],
  ['identity', coded(' identity'), 'refused'],
  ['gzip and chunked', coded(' gzip, chunked'), 'refused'],
  ['chunked and gzip', coded(' chunked, gzip'), 'refused'],
  ['chunked twice', coded(' chunked', ' chunked'), 'refused'],
  ['chunked twice in one', coded(' chunked, chunked'), 'refused'],
  ['chunked in quotes', coded(' "chunked"'), 'refused'],
  ['chunked with a parameter', coded(' chunked;q=1'), 'refused'],
  ['chunked behind a vertical tab', coded(' \vchunked'), 'refused', 'unanswered', 'no answer'],
  ['identity and chunked', coded(' identity', ' chunked'), 'refused'],
  // Whom is it for?
  ['no Host', withLines([TYPE, LENGTH]), 'refused'],
  ['two Hosts', extra('host: y'), 'refused'],
  ['two equal Hosts', extra(HOST), 'refused'],
  // What is no line of a head.
  ['an empty name', withLines([HOST, TYPE, LENGTH, ': x']), 'refused', 200, 'the field is ignored'],
  ['an empty name first', withLines([': x', HOST, TYPE, LENGTH]), 'refused'],
  [
    'a space before the colon',
    withLines([HOST, TYPE, `content-length : ${BODY.length}`]),
    'refused',
    'unanswered',
    'no answer',
  ],
  [
    'a tab before the colon',
    withLines([HOST, TYPE, `content-length\t: ${BODY.length}`]),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['a folded value', extra('x-folded: a\r\n b'), 'refused', 'unanswered', 'no answer'],
  ['a folded value by a tab', extra('x-folded: a\r\n\tb'), 'refused', 'unanswered', 'no answer'],
  [
    'a space before the first name',
    withLines([` ${HOST}`, TYPE, LENGTH]),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['a line without a colon', extra('nonsense'), 'refused', 'unanswered', 'no answer'],
  ['a name with a space', extra('x y: z'), 'refused', 'unanswered', 'no answer'],
  ['a name with a slash', extra('x/y: z'), 'refused', 'unanswered', 'no answer'],
  ['a name in brackets', extra('(x): z'), 'refused', 'unanswered', 'no answer'],
  ['a name beyond ASCII', extra('\u00e9: z'), 'refused', 'unanswered', 'no answer'],
  ['a value with NUL', extra('x-nul: a\0b'), 'refused', 'unanswered', 'no answer'],
  ['a value with a bare CR', extra('x-cr: a\rb'), 'refused', 'unanswered', 'no answer'],
  [
    'a value with a control character',
    extra('x-c: a\u0001b'),
    'refused',
    'unanswered',
    'no answer',
  ],
  [
    'bare LF behind a field',
    withLines([`${HOST}\n${TYPE}`, LENGTH]),
    'refused',
    'unanswered',
    'no answer',
  ],
  ['bare LF throughout', withLines([HOST, TYPE, LENGTH]).replaceAll('\r\n', '\n'), 'refused'],
  [
    'bare LF behind the request line',
    `${LINE}\n${HOST}\r\n${TYPE}\r\n${LENGTH}\r\n\r\n${BODY}`,
    'refused',
  ],
  ['HTTP/1.2', first(LINE.replace('1.1', '1.2')), 505],
  ['HTTP/2.0', first(LINE.replace('1.1', '2.0')), 505],
  ['a version in lower case', first(LINE.replace('HTTP', 'http')), 'refused'],
  ['no version', first('POST /workspace.v1.AuthzService/Check'), 505, 'unanswered', 'no answer'],
  [
    'two spaces in the request line',
    first(LINE.replace(' /', '  /')),
    200,
    'refused',
    'node:http skips blanks',
  ],
  ['a tab in the request line', first(LINE.replace(' /', '\t/')), 'refused'],
  ['a target that is none', first('POST nowhere HTTP/1.1'), 'refused'],
  ['a head that is too long', extra(`x-long: ${'x'.repeat(20_000)}`), 'refused'],
  [
    'noise',
    '\u0017\u0003\u0001\u0002\0\u0001\0\u0001\u00fc\u0003\u0003abcdefghijkl\r\n\r\n',
    'refused',
  ],
];

export const MESSAGES: readonly Message[] = ROWS.map(([name, text, first_, later, lost]) => ({
  name,
  text,
  first: first_,
  later: later ?? first_,
  onNode: text.startsWith(MADE_UP) ? 'refused' : first_,
  lost: lost ?? '',
  ...(/HTTP\/1\.0/.test(text) && !text.includes('keep-alive') ? { closes: true as const } : {}),
}));

/** Whether nothing may be taken that comes behind the message as a later one on uWebSockets.js. */
export function endsLater({ text, later }: Message): boolean {
  return later === 'refused' || later === 505 || later === 'unanswered' || CODED.test(text);
}
