/** Why a condition that a peer takes is not taken here, as the import says it, and how often of all questions. */
export type Refusal = { readonly kind: string; readonly reason: RegExp; readonly most: number };

/** Each kind with the most questions of all that it may take. What fits none is a fault of the import. */
export const REFUSALS: readonly Refusal[] = [
  { kind: 'zones by name, or written otherwise', reason: /a time zone is/, most: 22 },
  {
    kind: 'durations that are none, which SpiceDB sees when it is asked',
    reason: /is no duration/,
    most: 32,
  },
  { kind: 'messages', reason: /messages cannot be made/, most: 4 },
  { kind: 'names in backticks', reason: /syntax error: found [.(]/, most: 4 },
  { kind: 'quoted patterns', reason: /quotes with/, most: 4 },
  {
    kind: 'timestamps that are none, likewise',
    reason: /is no timestamp/,
    most: 24,
  },
  { kind: 'patterns that are none, likewise', reason: /parsing regexp|repeats too much/, most: 24 },
  { kind: 'networks that are none', reason: /is no network/, most: 4 },
  { kind: 'fields of other maps', reason: /has no field/, most: 4 },
];
