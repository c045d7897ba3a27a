/** Edits beyond which two names are strangers, whatever their length. */
const EDITS_MAX = 6;

/**
 * The candidate with the fewest single-character edits from `name`, the first of several, or undefined when
 * none is within `editsMax`. Cost: O(|name| · |candidate|) for each whose length is near; for messages only.
 */
export function nearestName(
  name: string,
  candidates: Iterable<string>,
  editsMax: number = EDITS_MAX,
): string | undefined {
  let nearest: string | undefined;
  let fewest = editsMax + 1;
  for (const candidate of candidates) {
    // As many edits at least.
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const edits = editDistance(name, candidate, fewest);
    if (edits < fewest) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

/** Levenshtein distance with one row (Wagner and Fischer, 1974); `max` or more where it is not below that. */
function editDistance(from: string, to: string, max: number): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    // No row after this one has less.
    if (Math.min(...next) >= max) return max;
    row = next;
  }
  return row[to.length] as number;
}
