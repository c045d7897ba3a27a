/** Most edits between two similar names, whatever their length. */
const EDITS_MAX = 6;
/** Characters of a name for each edit. A typo leaves most of a name unchanged. */
const CHARACTERS_PER_EDIT = 3;

/**
 * The candidate with the fewest typos from `name`, the first of several. A typo is a character
 * changed, inserted, left out, or exchanged with the next one. Undefined if no candidate is within
 * a third of the name's length: `team` is no typo of `seat`.
 * Cost: O(|name| · |candidate|) for each of similar length; for messages only.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  const editsMax = Math.max(1, Math.floor(name.length / CHARACTERS_PER_EDIT));
  let fewest = Math.min(EDITS_MAX, editsMax) + 1;
  for (const candidate of candidates) {
    // The distance is at least the difference of lengths.
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const edits = editDistance(name, candidate, fewest);
    if (edits < fewest) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

/**
 * Optimal string alignment with three rows (Wagner and Fischer, 1974; transpositions as Damerau,
 * 1964). Returns `max` or more if the distance is not below `max`.
 */
function editDistance(from: string, to: string, max: number): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      let edits = Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1);
      const isExchanged = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isExchanged) edits = Math.min(edits, (before[j - 2] as number) + 1);
      next.push(edits);
    }
    // No later row has a lower minimum.
    if (Math.min(...next) >= max && Math.min(...row) >= max) return max;
    before = row;
    row = next;
  }
  return row[to.length] as number;
}

/**
 * `; did you mean x?` for the known name nearest to `written`, or ''. Leading dashes do not count.
 */
export function meant(written: string, known: Iterable<string>): string {
  const near = nearestName(written, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}
