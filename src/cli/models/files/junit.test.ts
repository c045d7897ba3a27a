import fc from 'fast-check';
import { expect, test } from 'vitest';
import { junitXml } from './junit.ts';

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };
/** XML 1.0, 2.2: what may stand in a document. */
const CHARACTER = /^[\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]*$/u;

function decoded(text: string): string {
  expect(text).not.toMatch(/[<>]|&(?!(?:amp|lt|gt|quot|#\d+);)/);
  return text.replaceAll(/&(?:#(\d+)|(\w+));/g, (_, code?: string, name?: string) =>
    code === undefined ? (ENTITIES[name ?? ''] ?? '') : String.fromCodePoint(Number(code)),
  );
}

/** Elements in order, as `name {attributes}` and `/name`, with their texts: a strict reading of the subset that is written. */
function read(xml: string): readonly (readonly [string, unknown])[] {
  expect(xml).toMatch(CHARACTER);
  const [declaration, rest] = [xml.slice(0, 39), xml.slice(39)];
  expect(declaration).toBe('<?xml version="1.0" encoding="UTF-8"?>\n');
  const open: string[] = [];
  const found: (readonly [string, unknown])[] = [];
  let at = 0;
  const piece = /<(\/?)(\w+)((?: \w+="[^"<]*")*)(\/?)>|([^<]+)/gy;
  for (const [all, close, name = '', attributes = '', empty, text] of rest.matchAll(piece)) {
    at += all.length;
    if (text !== undefined) {
      if (text.trim() !== '') found.push(['text', decoded(text)]);
      continue;
    }
    if (close === '/') {
      expect(open.pop()).toBe(name);
      continue;
    }
    const pairs = [...attributes.matchAll(/ (\w+)="([^"]*)"/g)];
    for (const [, , value = ''] of pairs) expect(value).not.toMatch(/[\t\n\r]/);
    const values = pairs.map(([, key = '', value = '']) => [key, decoded(value)] as const);
    expect(new Set(values.map(([key]) => key)).size).toBe(values.length);
    found.push([name, Object.fromEntries(values)]);
    if (empty !== '/') open.push(name);
  }
  expect([at, open]).toEqual([rest.length, []]);
  return found;
}

const kept = (text: string): string =>
  Array.from(text.toWellFormed(), (one) => (CHARACTER.test(one) ? one : '\uFFFD')).join('');

test('any text comes through an XML reader as it is, but for what XML cannot hold', () => {
  const text = fc.string({ unit: 'binary', minLength: 1 }).map((one) => `x${one}`);
  fc.assert(
    fc.property(text, text, text, text, (file, name, failure, error) => {
      const cases = [
        { name, assertions: 2, failures: [failure, name] },
        { name: failure, assertions: 1, failures: [] },
      ];
      const xml = junitXml([
        { file, cases, error: undefined },
        { file: name, cases: [], error },
      ]);
      const of = (path: string, one: string, more: object) => [
        'testcase',
        { classname: kept(path), name: kept(one), file: kept(path), ...more },
      ];
      expect(read(xml)).toEqual([
        ['testsuites', { name: 'gatehouse model test', tests: '3', failures: '1', errors: '1' }],
        ['testsuite', { name: kept(file), tests: '2', failures: '1', errors: '0' }],
        of(file, name, { assertions: '2' }),
        ['failure', { message: kept(failure), type: 'assertion' }],
        ['text', kept(`${failure}\n${name}`)],
        of(file, failure, { assertions: '1' }),
        ['testsuite', { name: kept(name), tests: '1', failures: '0', errors: '1' }],
        of(name, name, {}),
        ['error', { message: kept(error), type: 'file' }],
        ['text', kept(error)],
      ]);
    }),
    { numRuns: 40 },
  );
  expect(read(junitXml([])).length).toBe(1);
  const controls = String.fromCodePoint(0, 8, 11, 27, 0xfffe, 0xffff, 0xd800);
  const none = junitXml([{ file: controls, cases: [], error: undefined }]);
  expect(none).toContain(`<testsuite name="${'\uFFFD'.repeat(7)}" tests="0"`);
});
