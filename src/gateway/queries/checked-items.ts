import { AppError } from '../../shared/app-error.ts';
import type { RpcReason } from '../rpc/rpc-reason.ts';

/** The items of a batch that can be asked, and the way back to all of them. */
export type CheckedItems<Item> = {
  readonly valid: readonly Item[];
  /** What is wrong with each of the others. */
  readonly problems: readonly AppError[];
  /** Results for all items: those of `valid`, in order, and of the others what `failed` makes of their errors. */
  readonly resultsOf: <Result>(
    results: readonly Result[],
    failed: (error: AppError) => Result,
  ) => Result[];
};

/**
 * Checks each of the items in `field` by `check`, which is given its place; one that is not valid gets
 * the error that it would have had alone. Errors: BATCH_TOO_LARGE. O(items).
 */
export function checkItems<Raw, Item>(
  field: string,
  items: readonly Raw[],
  itemsMax: number,
  check: (item: Raw, field: string) => Item,
): CheckedItems<Item> {
  if (items.length > itemsMax) {
    const message = `${field}: ${items.length} items, at most ${itemsMax}`;
    const metadata = { field, limit: String(itemsMax) };
    throw new AppError<RpcReason>('BATCH_TOO_LARGE', message, metadata);
  }
  const valid: Item[] = [];
  const errors = items.map((item, i): AppError | null => {
    try {
      valid.push(check(item, `${field}[${i}]`));
      return null;
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    }
  });
  return {
    valid,
    problems: errors.filter((error) => error !== null),
    resultsOf: (results, failed) => {
      let next = 0;
      return errors.map((error) => {
        if (error !== null) return failed(error);
        const result = results[next++];
        if (result === undefined) throw new Error('a batch has one result per valid item');
        return result;
      });
    },
  };
}
