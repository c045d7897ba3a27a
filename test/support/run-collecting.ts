/*
 * For tests: a program whose main thread collects all garbage when it gets SIGUSR2, and tells on stderr what its old
 * generation took before and after. Loaded before the program:
 *
 *   NODE_OPTIONS="--expose-gc --import=<this file>" node src/main.ts
 *
 * What grew since the collection before was promoted: garbage that grew old, which costs a full collection.
 */
import { getHeapSpaceStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

function oldBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space');
  if (space === undefined) throw new Error('V8 has no old space');
  return space.space_used_size;
}

if (isMainThread) {
  process.on('SIGUSR2', () => {
    const { gc } = globalThis;
    if (gc === undefined) throw new Error('run with --expose-gc');
    const beforeBytes = oldBytes();
    gc();
    process.stderr.write(
      `${JSON.stringify({ msg: 'collected', beforeBytes, afterBytes: oldBytes() })}\n`,
    );
  });
}
