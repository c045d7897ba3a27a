import { once } from 'node:events';

/** Resolves once the reader of the standard output has taken what was written, so that nothing piles up. */
export async function outputTaken(): Promise<void> {
  // Lines are written at the end of the turn.
  await Promise.resolve();
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
}

/** Writes bytes, and resolves once there is room for more. */
export async function writeOutput(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
}
