import { closeSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { takeOutputPipe } from './output-pipe.ts';
import { OutputReader } from './output-reader.ts';

/** Longer than a silence that is taken for the end. */
const STALL_MS = 250;

test('what was written before the event loop stood still is read before the end is declared', async () => {
  const pipe = takeOutputPipe();
  if (pipe === undefined) throw new Error('no pipe');
  let text = '';
  const reader = new OutputReader([pipe.reader], (chunk) => {
    text += chunk.toString();
    return undefined;
  });
  // The process has ended; something it left holds the pipe open.
  const drained = reader.drained();
  writeSync(pipe.writeFd, 'its last words');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  await drained;
  expect(text).toBe('its last words');
  closeSync(pipe.writeFd);
});
