import type { AuthzReason } from '../../model/reasons.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { AppError } from '../../shared/app-error.ts';
import { compareUtf8 } from '../../shared/text/utf8-order.ts';

/** Characters of the ids of one answer, whole or streamed. */
export const LIST_TEXT_MAX = 64 * 1_048_576;

/** How much an answer may still hold: a list is complete or an error, and memory is bounded. */
export class ListCapacity {
  #left: number;

  constructor(textMax = LIST_TEXT_MAX) {
    this.#left = textMax;
  }

  /** Counts an id. Errors: RESULT_TOO_LARGE. */
  charge(id: string): void {
    this.#left -= id.length;
    if (this.#left >= 0) return;
    throw new AppError<AuthzReason>(
      'RESULT_TOO_LARGE',
      `the ids of the list take more than ${LIST_TEXT_MAX} characters: ask for pages`,
      { limit: String(LIST_TEXT_MAX) },
    );
  }
}

/**
 * Returns a predicate: whether the id of an entity of `namespace` comes after `after` in UTF-8 byte order. Every one
 * does after ''. `after` need not be the id of any entity: then each comparison makes a text.
 */
export function laterThan(
  reader: TupleReader,
  namespace: number,
  after: string,
): (entity: number) => boolean {
  if (after === '') return () => true;
  const key = reader.entityId(namespace, after);
  if (key !== 0) return (entity) => reader.compareEntityIds(entity, key) > 0;
  return (entity) => compareUtf8(reader.entityText(entity), after) > 0;
}
