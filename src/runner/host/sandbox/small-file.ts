import { readFileSync, type Stats, statSync } from 'node:fs';

// Of the few small files that a repository consists of, each is read in microseconds; the way through
// the thread pool takes ten times as long, and under load much longer.

/** The content of a small file; undefined when it cannot be read. */
export function readSmall(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Undefined when nothing is there, or it cannot be looked at. */
export function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
