import { describe, expect, test } from 'vitest';
import { type PlainHead, callHeadOf, callTypeOf } from './call-head.ts';

const MAX = 30_000;

function headOf(
  contentType: string,
  encoding?: string,
  accepted?: string,
  timeout?: string,
): PlainHead | null {
  const type = callTypeOf(contentType);
  if (type === undefined) throw new Error(contentType);
  return callHeadOf(type, encoding, accepted, timeout, MAX);
}

test.each([
  ['application/grpc', 'application/grpc+proto'],
  ['application/grpc+json', 'application/grpc+json'],
  ['application/grpc-web', 'application/grpc-web+proto'],
  ['application/grpc-web+json', 'application/grpc-web+json'],
  ['application/json', 'application/json'],
  ['application/proto', 'application/proto'],
])('%s is answered as %s', (asked, answered) => {
  expect(headOf(asked)?.answerType).toBe(answered);
});

test.each([[undefined], ['Application/grpc'], ['application/grpc-web-text'], ['text/plain']])(
  '%s is for the general path',
  (contentType) => expect(callTypeOf(contentType)).toBeUndefined(),
);

describe('time', () => {
  test.each([
    ['1S', 1_000],
    ['20000m', 20_000],
    ['5000u', 5],
    ['2000000n', 2],
    ['1H', MAX],
    ['99999999M', MAX],
  ])('grpc-timeout %s', (text, timeoutMs) => {
    const head = headOf('application/grpc', undefined, undefined, text);
    expect(head).toMatchObject({ timeoutMs, isTimeoutStated: true });
  });

  test.each([[''], ['1'], ['S'], ['100000000m'], ['1s'], ['-1S'], ['1 S'], ['999u'], ['0S']])(
    'grpc-timeout "%s" is for the general path',
    (text) => expect(headOf('application/grpc', undefined, undefined, text)).toBeNull(),
  );

  test('of Connect are milliseconds', () => {
    const timeoutOf = (text: string): number | undefined =>
      headOf('application/json', undefined, undefined, text)?.timeoutMs;
    expect(timeoutOf('25')).toBe(25);
    expect(timeoutOf('9999999999')).toBe(MAX);
    for (const text of ['', '0', '99999999999', '1S', '1.5']) {
      expect(timeoutOf(text)).toBeUndefined();
    }
  });

  test('calls that state none share a head, and no other ones', () => {
    const type = callTypeOf('application/json');
    if (type === undefined) throw new Error('JSON has a hot path');
    const shared = callHeadOf(type, undefined, 'gzip', undefined, MAX);
    expect(callHeadOf(type, undefined, 'br,gzip', undefined, MAX)).toBe(shared);
    expect(callHeadOf(type, undefined, 'br', undefined, MAX)).not.toBe(shared);
    expect(callHeadOf(type, undefined, 'gzip', '10', MAX)).toMatchObject({ timeoutMs: 10 });
    expect(callHeadOf(type, undefined, 'gzip', undefined, 5)).toMatchObject({ timeoutMs: 5 });
    expect(shared).toMatchObject({ timeoutMs: MAX, isTimeoutStated: false, isGzipWanted: true });
  });

  test('without one is the longest', () => {
    expect(headOf('application/grpc')).toMatchObject({ timeoutMs: MAX, isTimeoutStated: false });
  });
});

describe('compression', () => {
  test.each([
    [undefined, undefined, false, false],
    ['identity', undefined, false, false],
    ['gzip', undefined, true, true],
    ['gzip', '', true, true],
    ['gzip', 'identity', true, false],
    [undefined, 'identity, gzip', false, true],
    [undefined, 'gzip;q=1', false, false],
  ])('%s, accepting %s', (encoding, accepted, isGzipAllowed, isGzipWanted) => {
    const head = headOf('application/grpc', encoding, accepted);
    expect(head).toMatchObject({ isGzipAllowed, isGzipWanted });
  });

  test('any other, and identity in Connect, are for the general path', () => {
    expect(headOf('application/grpc', 'br')).toBeNull();
    expect(headOf('application/json', 'identity')).toBeNull();
  });
});
