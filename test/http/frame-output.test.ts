import { expect, test } from 'vitest';
import { FrameOutput } from '../../src/http/http2/frames/frame-output.ts';
import { encodeHead } from '../../src/http/http2/hpack/hpack-encoder.ts';

test('long heads of one turn do not change each other', () => {
  const output = new FrameOutput();
  for (const letter of ['a', 'b']) {
    output.block(0, 1, encodeHead({ 'x-long': letter.repeat(3_000) }, false, false));
  }
  const sent = Buffer.concat(output.drain()).toString('latin1');
  expect(sent).toContain('a'.repeat(3_000));
  expect(sent).toContain('b'.repeat(3_000));
});
