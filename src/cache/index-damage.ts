/** The parts of an index, as metrics and logs name them. */
export type IndexPart =
  | 'dictionary'
  | 'names'
  | 'nodes'
  | 'lists'
  | 'positions'
  | 'qualifiers'
  | 'hashes'
  | 'tuples';

/** An index that is not what it must be: drop it and load again. The message names no tuple. */
export class IndexDamage extends Error {
  readonly part: IndexPart;

  constructor(part: IndexPart, message: string) {
    super(message);
    this.name = 'IndexDamage';
    this.part = part;
  }
}

/** Throws IndexDamage unless `isSound`. */
export function mustBeSound(isSound: boolean, part: IndexPart, message: string): asserts isSound {
  if (!isSound) throw new IndexDamage(part, message);
}
