import { nearestName } from './nearest-name.ts';

const EDITS_MAX = 3;

/** `; did you mean x?` for the known name that is near enough to what was written, else ''. */
export function meant(written: string, known: Iterable<string>): string {
  const editsMax = Math.min(EDITS_MAX, Math.ceil(written.replace(/^-+/, '').length / 3));
  const near = nearestName(written, known, editsMax);
  return near === undefined ? '' : `; did you mean ${near}?`;
}
