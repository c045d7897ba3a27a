import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gunzipLimited } from './gzip.ts';

test('what was compressed comes back, up to the limit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 5_000, size: 'max' }),
      async (bytes) => {
        const compressed = gzipSync(bytes);
        const back = await gunzipLimited(compressed, bytes.length);
        expect(Buffer.compare(back, bytes)).toBe(0);
        if (bytes.length > 1) {
          await expect(gunzipLimited(compressed, bytes.length - 1)).rejects.toMatchObject({
            reason: 'BODY_TOO_LARGE',
          });
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('what is not gzip, or is cut short, is malformed', async () => {
  const whole = gzipSync('some text that is long enough to be cut');
  for (const bytes of [Buffer.from('plain'), whole.subarray(0, -6), whole.subarray(0, 3)]) {
    await expect(gunzipLimited(bytes, 1_000)).rejects.toMatchObject({ reason: 'BODY_MALFORMED' });
  }
});

test('an empty body is empty', async () => {
  expect(await gunzipLimited(new Uint8Array(0), 10)).toHaveLength(0);
});
