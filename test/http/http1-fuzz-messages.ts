import fc from 'fast-check';

/* Random messages of HTTP/1, well-formed and not, as bytes of latin1. */

const FIRST_BLANK = /^[ \t]/;
const token = fc.string({
  unit: fc.constantFrom(...'abcxyzABC019-_!#'.split('')),
  minLength: 1,
  maxLength: 8,
});
const method = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS') },
  { weight: 1, arbitrary: fc.constantFrom('CONNECT', 'get', 'PATCH', 'FROB', 'G ET', 'PRI', '') },
);
const target = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom('/', '/a?b=c', '/a/../b', '/%00%zz?%', '/early', '/a?b#c'),
  },
  { weight: 1, arbitrary: fc.constantFrom('http://x/abs', 'HTTP://y:1/abs?q', 'http://x', 'x:80') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('*', '', 'no-slash', '/sp ace', '/tab\t', '/\xff', '/\x7f', '//'),
  },
);
const version = fc.oneof(
  { weight: 12, arbitrary: fc.constant('HTTP/1.1') },
  { weight: 2, arbitrary: fc.constant('HTTP/1.0') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/0.9',
      'http/1.1',
      'HTTP/1.10',
      'HTTP/1',
      '',
    ),
  },
);
const host = fc.oneof(
  { weight: 12, arbitrary: fc.constant('Host: x\r\n') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', 'Host: x\r\nHost: x\r\n', 'host:\r\n', 'Host : x\r\n'),
  },
);
const value = fc.string({ unit: fc.constantFrom(...'abc ,;="\t\xe9'.split('')), maxLength: 12 });
const field = fc.tuple(token, value).map(([name, text]) => `${name}: ${text}\r\n`);
const rareField = fc.constantFrom(
  'Connection: close\r\n',
  'Connection: keep-alive\r\n',
  'Connection: Keep-Alive, close\r\n',
  // Both together make node:http forget the body: no reader to compare with.
  'Connection: upgrade\r\n',
  'Upgrade: h2c\r\n',
  'Expect: 100-continue\r\n',
  'Expect: 200-ok\r\n',
  'Authorization: Bearer a\r\n',
  'Authorization: Bearer a\r\nAuthorization: Bearer b\r\n',
  // What smugglers send: each is either refused, or read by both alike.
  ' folded: line\r\n',
  'a: b\r\n folded\r\n',
  'a: b\r\n\tfolded\r\n',
  'a: b\n',
  'a: b\r',
  'a: b\0c\r\n',
  'a: b\x7f\r\n',
  'no colon\r\n',
  ': no name\r\n',
  'Content-Length: 0\r\n',
  'Content-Length: 3\r\n',
  'Content-Length: 3, 3\r\n',
  'Content-Length: +3\r\n',
  'Content-Length: -1\r\n',
  'Content-Length: 0x3\r\n',
  'Content-Length: 3 3\r\n',
  'Content-Length: \r\n',
  'Content-Length : 3\r\n',
  'Content-Length: 99999999999999999999\r\n',
  'Content_Length: 3\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Transfer-Encoding: chunked, gzip\r\n',
  'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding: xchunked\r\n',
  'Transfer-Encoding:\tchunked\r\n',
  'Transfer-Encoding : chunked\r\n',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
  'Transfer-Encoding:\r\n chunked\r\n',
  'Transfer-Encoding: "chunked"\r\n',
  'Transfer-Encoding: \x0bchunked\r\n',
  'Trailer: a\r\n',
  'TE: trailers\r\n',
);
const fields = fc
  .tuple(
    fc.array(field, { maxLength: 4 }),
    fc.option(rareField, { freq: 3, nil: '' }),
    fc.array(field, { maxLength: 2 }),
  )
  .map(([before, rare, after]) => [...before, rare, ...after].join(''));
const content = fc.oneof(
  { weight: 6, arbitrary: fc.uint8Array({ maxLength: 200, size: 'max' }) },
  // Beyond what is read at a time.
  { weight: 1, arbitrary: fc.nat(150_000).map((length) => new Uint8Array(length).fill(120)) },
  { weight: 1, arbitrary: fc.constant(Buffer.from('GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n')) },
);
const body = content.map((bytes) => Buffer.from(bytes).toString('latin1'));

const extension = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ';a',
      ';a=b',
      ' ;a',
      ';a="b;c"',
      ';\t',
      ' ',
      ';a\x01',
      ';\n',
      ';a\r',
      '\t;a="\r\n"',
    ),
  },
);
const size = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('right', 'RIGHT', '00right') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      '0x1',
      '-1',
      '+1',
      'g',
      '1 1',
      ' 1',
      '1',
      'fffffffffffffffff',
      '0000000000000000000',
    ),
  },
);
const end = fc.oneof(
  { weight: 16, arbitrary: fc.constant('\r\n') },
  { weight: 1, arbitrary: fc.constantFrom('\n', '\r', '', '\r\r\n', '\r\n\r\n', 'X\r\n') },
);
const chunk = fc.tuple(body, size, extension, end, end).map(([data, form, ext, behind, last]) => {
  // An empty one would be the last.
  const text = data === '' ? 'x' : data;
  const digits = text.length.toString(16);
  const written = form.replace('right', digits).replace('RIGHT', digits.toUpperCase());
  return `${written}${ext}${behind}${text}${last}`;
});
const trailer = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: field },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'a b: c\r\n',
      ': c\r\n',
      'a: b\n',
      'a\r\n',
      ' a: b\r\n',
      'a: \0\r\n',
      'Host: y\r\n',
    ),
  },
);
const chunked = fc
  .tuple(fc.array(chunk, { maxLength: 3 }), extension, trailer, end)
  .map(([chunks, ext, last, behind]) => ({
    field: 'Transfer-Encoding: chunked\r\n',
    text: `${chunks.join('')}0${ext}\r\n${last}${behind}`,
  }));
const sized = fc
  .tuple(
    body,
    fc.oneof(
      { weight: 12, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: -3, max: 20 }) },
    ),
  )
  .map(([text, off]) => ({ field: `Content-Length: ${Math.max(0, text.length + off)}\r\n`, text }));
const none = fc.constant({ field: '', text: '' });

const message = fc
  .tuple(
    method,
    target,
    version,
    host,
    fields,
    fc.oneof(
      { weight: 2, arbitrary: none },
      { weight: 2, arbitrary: sized },
      { weight: 3, arbitrary: chunked },
    ),
    end,
    fc.oneof(
      { weight: 9, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constantFrom('\r\n', '\n', '\r', '\r\n\r\n', ' ') },
    ),
  )
  .map(([verb, path, protocol, named, others, content_, headEnd, before]) => {
    const line = `${verb} ${path} ${protocol}\r\n`;
    return `${before}${line}${named}${others}${content_.field}${headEnd}${content_.text}`;
  });

/** One that nothing is wrong with, so that connections come to speak about what is behind it. */
const plain = fc
  .tuple(fc.constantFrom('GET', 'POST'), body, fc.boolean())
  .map(([verb, text, isChunked]) =>
    isChunked && text !== ''
      ? `${verb} /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
      : `${verb} /plain HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );

/** A byte is changed, put in or taken out. */
const mutated = fc
  .tuple(
    fc.oneof(message, plain),
    fc.nat(400),
    fc.constantFrom('change', 'insert', 'remove'),
    fc.nat(255),
  )
  .map(([text, at, how, byte]) => {
    const place = at % Math.max(1, text.length);
    const put = how === 'remove' ? '' : String.fromCharCode(byte);
    return text.slice(0, place) + put + text.slice(how === 'insert' ? place : place + 1);
  });

/** What both readers are sent behind all others: it ends the connection unless something swallows it. */
export const LAST_MESSAGE = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.repeat(3);

/** The bytes of one connection. One that looks like HTTP/2 is another reader's. */
export const connectionBytes = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: plain },
      { weight: 4, arbitrary: message },
      { weight: 2, arbitrary: mutated },
    ),
    { minLength: 1, maxLength: 5, size: 'max' },
  )
  .map((messages) => messages.join('') + LAST_MESSAGE)
  .filter((text) => !text.startsWith('PRI') && !FIRST_BLANK.test(text))
  .map((text) => Buffer.from(text, 'latin1'));

/** Where the bytes are cut: some places, or every so many bytes at their beginning. */
export const cuts = fc.oneof(
  fc.array(fc.nat(200_000), { maxLength: 12, size: 'max' }),
  fc
    .integer({ min: 1, max: 30 })
    .map((step) => Array.from({ length: 60 }, (_, i) => (i + 1) * step)),
);
