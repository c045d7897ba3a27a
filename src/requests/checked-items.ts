import type { AuthzReason } from '../model/reasons.ts';
import { AppError } from '../shared/app-error.ts';

/** Items checked, or results placed, in one step. */
const ITEMS_PER_STEP = 64;

/** The items of a batch that can be asked, and the way back to all of them. */
export type CheckedItems<Item> = {
  readonly valid: readonly Item[];
  /** Errors of the other items. */
  readonly problems: readonly AppError[];
  /** Results for all items, in steps: what `placed` makes of those of `valid`, in order, and `failed` of the errors of the others. */
  readonly resultsOf: <Result, Placed>(
    results: readonly Result[],
    placed: (result: Result) => Placed,
    failed: (error: AppError) => Placed,
  ) => Generator<void, Placed[]>;
};

/**
 * Checks each of the items in `field` by `check`, which is given its place, in steps to be run to their end; one that `isLong` ends a step. One that is not valid gets
 * the error that it would have had alone. Errors: BATCH_TOO_LARGE. O(items).
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
