import { nearestName } from './nearest-name.ts';

/** `; did you mean x?` for the known name that is near enough to what was written, else ''. Leading dashes do not count. */
export function meant(written: string, known: Iterable<string>): string {
  const near = nearestName(written, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}
