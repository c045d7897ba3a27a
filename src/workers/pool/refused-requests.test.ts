import { expect, test } from 'vitest';
import { RefusedRequests } from './refused-requests.ts';

const body = (text: string): Uint8Array => Buffer.from(text);

test('only the same label and bytes are refused, and not for ever', () => {
  let nowMs = 0;
  const refused = new RefusedRequests(() => nowMs);
  refused.remember('check a', body('killer'));
  expect(refused.isRefused(() => 'check a', body('killer'))).toBe(true);
  expect(refused.isRefused(() => 'check a', body('kilLer'))).toBe(false);
  expect(refused.isRefused(() => 'check b', body('killer'))).toBe(false);
  nowMs = 600_001;
  expect(refused.isRefused(() => 'check a', body('killer'))).toBe(false);
  expect(refused.size).toBe(0);
});

test('the memory is bounded, and other lengths cost no hash', () => {
  const refused = new RefusedRequests(() => 0);
  for (let i = 0; i < 2_000; i++) refused.remember('x', body(`killer ${i}`));
  expect(refused.size).toBe(1_024);
  const label = (): string => {
    throw new Error('made for a length that was never remembered');
  };
  expect(refused.isRefused(label, body('short'))).toBe(false);
});
