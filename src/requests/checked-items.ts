import type { AuthzReason } from '../model/reasons.ts';
import { AppError } from '../shared/app-error.ts';

/** Maximum number of items checked, or results placed, in one step. */
const ITEMS_PER_STEP = 64;

/** The valid items of a batch, and the function that builds results for all of its items. */
export type CheckedItems<Item> = {
  readonly valid: readonly Item[];
  /** Errors of the invalid items, in order. */
  readonly problems: readonly AppError[];
  /**
   * Builds the results of all items, in steps: `placed` of each result of a valid item, in order, and `failed` of each
   * error.
   */
  readonly resultsOf: <Result, Placed>(
    results: readonly Result[],
    placed: (result: Result) => Placed,
    failed: (error: AppError) => Placed,
  ) => Generator<void, Placed[]>;
};

/**
 * Checks each item of `field` with `check`, which gets the path of the item. Runs in steps that the caller runs to the
 * end. An item that `isLong` ends a step. An invalid item gets the error that it would have had alone. Errors:
 * BATCH_TOO_LARGE. O(items).
 */
export function* checkItems<Raw, Item>(
  field: string,
  items: readonly Raw[],
  itemsMax: number,
  check: (item: Raw, field: string) => Item,
  isLong: (item: Raw) => boolean = () => false,
): Generator<void, CheckedItems<Item>> {
  if (items.length > itemsMax) {
    const message = `${field}: ${items.length} items, at most ${itemsMax}`;
    const metadata = { field, limit: String(itemsMax) };
    throw new AppError<AuthzReason>('BATCH_TOO_LARGE', message, metadata);
  }
  const valid: Item[] = [];
  const errors: (AppError | null)[] = [];
  for (const [i, item] of items.entries()) {
    try {
      valid.push(check(item, `${field}[${i}]`));
      errors.push(null);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      errors.push(error);
    }
    if (isLong(item) || errors.length % ITEMS_PER_STEP === 0) yield;
  }
  return {
    valid,
    problems: errors.filter((error) => error !== null),
    *resultsOf<Result, Placed>(
      results: readonly Result[],
      placed: (result: Result) => Placed,
      failed: (error: AppError) => Placed,
    ) {
      const all: Placed[] = [];
      let next = 0;
      for (const error of errors) {
        const result = error === null ? results[next++] : undefined;
        if (error !== null) all.push(failed(error));
        else if (result === undefined) throw new Error('a batch has one result per valid item');
        else all.push(placed(result));
        if (all.length % ITEMS_PER_STEP === 0) yield;
      }
      return all;
    },
  };
}
