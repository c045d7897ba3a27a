/** A question that is decided otherwise than at a peer on purpose, and of how many at most. */
export type Difference = {
  readonly kind: string;
  /** `there → here` of the answers that it excuses. */
  readonly answers: RegExp;
  /** Found in the expression followed by the context. */
  readonly sign: RegExp;
  readonly most: number;
};

/** Undecided, so that it denies: nothing is granted that the peer does not grant. */
const UNDECIDED = /^(?:true|false) → error$/;

/**
 * Each kind with the most questions of all that it may take. What is decided here, be it otherwise or where the peer has an
 * error, is listed by itself; the rest is undecided here.
 */
export const DIFFERENCES: readonly Difference[] = [
  // RFC 3339 allows small letters; Go's reader does not.
  { kind: 'small letters in times', answers: /^error → /, sign: /\d\dt\d\d.*\d\dz/, most: 3 },
  // OpenFGA refuses texts that no double says exactly; SpiceDB takes them.
  {
    kind: 'inexact doubles in texts',
    answers: /^error → /,
    sign: /"p0":"(?:0\.1|\d{16})"/,
    most: 2,
  },
  // OpenFGA reads a mapped network as one of IPv4, as here; SpiceDB does not.
  { kind: 'mapped networks', answers: /^false → true$/, sign: /::ffff:[\d.]+\/104/, most: 2 },
  // Keys of maps are no doubles in CEL: here one that is whole is the int.
  {
    kind: 'whole doubles as keys',
    answers: /^false → true$/,
    sign: /\{1:1\}.*\{1\.0:1\}/,
    most: 1,
  },
  { kind: 'zones by name', answers: UNDECIDED, sign: /"p\d":"[A-Z][a-z]+\/|GMT/, most: 5 },
  {
    kind: 'keys that are no keys',
    answers: UNDECIDED,
    sign: /(?:null|\d\.\d|NaN|0\/0\.0\)+): ?/,
    most: 12,
  },
  { kind: 'a value that is no key, in a map', answers: UNDECIDED, sign: / in /, most: 4 },
  { kind: 'has() of what is no map', answers: UNDECIDED, sign: /has\(/, most: 3 },
  { kind: 'numbers of Go', answers: UNDECIDED, sign: /1_000|0x1p4|1p4|0{9}1/, most: 6 },
  { kind: 'ints beyond 2^53, or beyond 64 bits', answers: UNDECIDED, sign: /\d{16}/, most: 2 },
  {
    kind: 'offsets and years out of range',
    answers: UNDECIDED,
    sign: /[+-]24:00|[+-]\d\d:60|0000-01|0001-01-01T00:00:00\+|9999-12-31T23:59:59-/,
    most: 8,
  },
  { kind: 'quoted patterns', answers: UNDECIDED, sign: /\\Q/, most: 1 },
  { kind: 'the negative of a duration', answers: UNDECIDED, sign: /-dyn\(duration/, most: 1 },
];
