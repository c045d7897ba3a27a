import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collectGarbage: (() => void) | undefined;

/** Bytes that this thread can still reach, on the heap and outside of it, after everything else was collected. */
export function reachableBytes(): number {
  if (collectGarbage === undefined) {
    setFlagsFromString('--expose_gc');
    collectGarbage = runInNewContext('gc') as () => void;
  }
  for (let i = 0; i < 4; i++) collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
