import { describe, expect, test } from 'vitest';
import { boundTimeouts, connectTimeoutMs, grpcTimeoutMs, setTimeLeft } from './call-timeouts.ts';

test.each([
  ['0', 0],
  ['1', 1],
  ['9999999999', 9_999_999_999],
  ['', 0],
  ['-1', 0],
  ['1.5', 0],
  ['12345678901', 0],
])('Connect-Timeout-Ms "%s" is %d ms', (text, ms) => {
  expect(connectTimeoutMs(text)).toBe(ms);
});

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3_000],
  ['4m', 4],
  ['5u', 0.005],
  ['6n', 0.000_006],
  ['99999999m', 99_999_999],
  ['100000000m', 0],
  ['5', 0],
  ['S', 0],
  ['', 0],
  ['-1S', 0],
])('grpc-timeout "%s" is %d ms', (text, ms) => {
  expect(grpcTimeoutMs(text)).toBeCloseTo(ms, 9);
});

describe('boundTimeouts', () => {
  const bounded = (given: Record<string, string>, timeoutMsMax?: number) => {
    const headers = new Headers(given);
    boundTimeouts(headers, timeoutMsMax);
    return [headers.get('connect-timeout-ms'), headers.get('grpc-timeout')];
  };
  const grpc = { 'content-type': 'application/grpc' };
  const web = { 'content-type': 'application/grpc-web+proto' };
  const json = { 'content-type': 'application/json' };

  test('without a longest time it cuts what timers cannot hold alone', () => {
    expect(bounded({ ...json, 'connect-timeout-ms': '9999999999' })).toEqual(['2147483647', null]);
    expect(bounded({ ...grpc, 'grpc-timeout': '99999999H' })).toEqual([null, '2147483S']);
    expect(bounded({ ...grpc, 'grpc-timeout': '2147483S' })).toEqual([null, '2147483S']);
    expect(bounded({ ...grpc, 'grpc-timeout': '2147484S' })).toEqual([null, '2147483S']);
    expect(bounded(json)).toEqual([null, null]);
    expect(bounded(grpc)).toEqual([null, null]);
  });

  test('it states the longest time where none is stated, in the header of the protocol', () => {
    expect(bounded(json, 30_000)).toEqual(['30000', null]);
    expect(bounded(grpc, 30_000)).toEqual([null, '30000m']);
    expect(bounded(web, 30_000)).toEqual([null, '30000m']);
    expect(bounded(grpc, 200_000_000)).toEqual([null, '200000S']);
  });

  test('it cuts a longer time, leaves a shorter one, and leaves what is ill-formed to be refused', () => {
    expect(bounded({ ...json, 'connect-timeout-ms': '30001' }, 30_000)).toEqual(['30000', null]);
    expect(bounded({ ...json, 'connect-timeout-ms': '5' }, 30_000)).toEqual(['5', null]);
    expect(bounded({ ...json, 'connect-timeout-ms': 'x' }, 30_000)).toEqual(['x', null]);
    expect(bounded({ ...grpc, 'grpc-timeout': '1H' }, 30_000)).toEqual([null, '30000m']);
    expect(bounded({ ...web, 'grpc-timeout': '29S' }, 30_000)).toEqual([null, '29S']);
    expect(bounded({ ...web, 'grpc-timeout': 'soon' }, 30_000)).toEqual([null, 'soon']);
  });
});

test('the time that is left is stated in the header that stated the whole', () => {
  const left = (given: Record<string, string>, ms: number) => {
    const headers = new Headers(given);
    setTimeLeft(headers, ms);
    return [headers.get('connect-timeout-ms'), headers.get('grpc-timeout')];
  };
  expect(left({ 'grpc-timeout': '1H' }, 12.2)).toEqual([null, '13m']);
  expect(left({ 'connect-timeout-ms': '100' }, 0)).toEqual(['1', null]);
  expect(left({ 'grpc-timeout': '1H' }, 100_000_000)).toEqual([null, '1H']);
});
