import { expect, test } from 'vitest';
import { HEADER_BYTES_MAX } from '../http-limits.ts';
import { type FirstHead, firstHeadOf } from './first-head.ts';

const LINE = 'POST /a/b?c=%20d HTTP/1.1';
const PLAIN = `${LINE}\r\nHost: x\r\nContent-Length: 5\r\nx: a\tb\xe9\r\n\r\nhello`;
const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
const extra = (line: string): string => head(LINE, 'host: x', line);

function of(text: string): FirstHead {
  // Behind what was read are the bytes of another connection.
  const bytes = Buffer.concat([Buffer.from(text, 'latin1'), Buffer.from('\r\n\r\nGET / HTTP/1.1')]);
  return firstHeadOf(bytes, text.length);
}

test.each([
  ['a length', PLAIN],
  ['no body', head('GET / HTTP/1.1', 'host:x')],
  ['a body that has not come whole', PLAIN.slice(0, -3)],
  ['a body that has not come', head(LINE, 'host: x', 'content-length: 5')],
  ['a length of zero', head(LINE, 'host: x', 'CONTENT-LENGTH:0')],
  ['blanks around the length', head(LINE, 'content-length: \t 7\t ', 'HOST: x')],
  ['a body like fields', `${head(LINE, 'host: x', 'content-length: 9')}\r\nhost: y`],
  ['an empty Host', head('GET / HTTP/1.1', 'Host:')],
  ['a made-up method', head("M!#$%&'*+-.^_`|~9 / HTTP/1.1", 'host: x')],
  ['names that only begin like others', extra('transfer-encoding-x: chunked\r\nhosts: y')],
  ['ninety fields', head(LINE, 'host: x', ...Array.from({ length: 89 }, (_, i) => `x-${i}: y`))],
  ['bytes beyond ASCII', head('GET /\xff HTTP/1.1', 'host: x', 'x: \x80\xff')],
  ['asked to close', extra('connection: close')],
])('plain: %s', (_name, text) => {
  expect(of(text)).toBe('plain');
});

test.each([
  ['a second request behind', head(LINE, 'host: x') + head(LINE, 'host: x')],
  ['a byte behind the body', `${PLAIN}!`],
  ['HTTP/1.0', PLAIN.replace('HTTP/1.1', 'HTTP/1.0')],
  ['another version', PLAIN.replace('HTTP/1.1', 'HTTP/1.10')],
  ['no version', PLAIN.replace(' HTTP/1.1', '')],
  ['an absolute target', PLAIN.replace(' /', ' http://x/')],
  ['the target of all', head('OPTIONS * HTTP/1.1', 'host: x')],
  ['the target of a tunnel', head('CONNECT x:80 HTTP/1.1', 'host: x')],
  ['a target with a blank', PLAIN.replace('/a/b', '/a b')],
  ['a target with DEL', PLAIN.replace('/a/b', '/a\x7fb')],
  ['two blanks', PLAIN.replace(' /', '  /')],
  ['no method', PLAIN.replace('POST', '')],
  ['an empty line before', `\r\n${PLAIN}`],
  ['no Host', head(LINE, 'content-length: 0')],
  ['no field at all', head(LINE)],
  ['two Hosts', extra('Host: x')],
  ['two lengths', extra('content-length: 0\r\ncontent-length: 0')],
  ['a length that is none', extra('content-length: +5')],
  ['a length without a number', extra('content-length:')],
  ['a list of lengths', extra('content-length: 5, 5')],
  ['a length of sixteen digits', extra(`content-length: ${'1'.repeat(16)}`)],
  ['a length beside one that is none', extra('content-length: 5\r\ncontent-length: x')],
  ['two Hosts in place of a length', extra('host: y\r\ncontent-length: x')],
  ['chunks', extra('Transfer-Encoding: chunked')],
  ['any coding', extra('transfer-encoding:')],
  ['an expectation', extra('expect: 100-continue')],
  [
    'ninety-one fields',
    head(LINE, 'host: x', ...Array.from({ length: 90 }, (_, i) => `x-${i}: y`)),
  ],
  ['a folded value', extra('a: b\r\n c')],
  ['a blank before a colon', extra('a : b')],
  ['no colon', extra('a')],
  ['an empty name', extra(': a')],
  ['NUL', extra('a: \0')],
  ['a bare CR', extra('a: b\rc')],
  ['a bare LF', extra('a: b\nc: d')],
  ['bare LF throughout', PLAIN.replaceAll('\r\n', '\n')],
  ['noise', '\x17\x03\x01\x02\0\x01'],
  ['a head that never ends', `${LINE}\r\nx: ${'y'.repeat(HEADER_BYTES_MAX)}`],
  ['a request line that never ends', `GET /${'y'.repeat(HEADER_BYTES_MAX)}`],
])('other: %s', (_name, text) => {
  expect(of(text)).toBe('other');
});

test('every beginning of a plain head is waited for', () => {
  const end = PLAIN.indexOf('hello');
  for (let count = 0; count < end; count++) {
    expect(of(PLAIN.slice(0, count)), `${count} bytes`).toBe('partial');
  }
  expect(of(PLAIN.slice(0, end))).toBe('plain');
});

test('what can be no head is not waited for', () => {
  for (const text of ['{}\n', 'GET\r\nx', 'GET /\n', '(', ' GET', 'GET / HTTP/1.1\r\na: b\rc']) {
    expect(of(text), JSON.stringify(text)).toBe('other');
  }
});
