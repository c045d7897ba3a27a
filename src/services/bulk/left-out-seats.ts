import { SEAT_NAMESPACE } from '../../model/names.ts';
import type { RawTuple } from '../../model/raw-tuple.ts';

const EXAMPLES_MAX = 3;
const TEXT_MAX = 100;

/** Tuples of seats among those of an import. Exports have them, and seat operations alone write them. */
export class LeftOutSeats {
  #count = 0;
  readonly #examples: string[] = [];

  /** Whether a tuple is one, and thereby left out. */
  take({ namespace, objectId, relation, subject }: RawTuple): boolean {
    if (namespace !== SEAT_NAMESPACE) return false;
    this.#count += 1;
    if (this.#examples.length < EXAMPLES_MAX) {
      const kind = subject?.kind;
      const user = kind?.case === 'userId' ? `@user:${kind.value}` : '';
      this.#examples.push(`${namespace}:${objectId}#${relation}${user}`.slice(0, TEXT_MAX));
    }
    return true;
  }

  get found(): { readonly count: number; readonly examples: readonly string[] } {
    return { count: this.#count, examples: this.#examples };
  }
}
