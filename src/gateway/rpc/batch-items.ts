import type { BatchCheckItem } from '../../gen/workspace/v1/authz_service_pb.ts';
import { checkUserId } from '../../model/names.ts';
import type { BatchItem, BatchItemResult } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import { checkObjectRelation, subjectMissing } from './query-from-proto.ts';
import type { RpcReason } from './rpc-reason.ts';

/** The items of a BatchCheck that can be evaluated, and the way back to all of them. */
export type BatchItems = {
  readonly valid: readonly BatchItem[];
  /** What is wrong with each of the others. */
  readonly problems: readonly AppError[];
  /** Results for all items: those of `valid`, in order, and the errors of the others. */
  readonly resultsOf: (results: readonly BatchItemResult[]) => BatchItemResult[];
};

/**
 * Checks each item; one that is not valid gets the text of the error that Check would have given.
 * Errors: BATCH_TOO_LARGE. O(items).
 */
export function batchItemsFromProto(
  items: readonly BatchCheckItem[],
  itemsMax: number,
): BatchItems {
  if (items.length > itemsMax) {
    throw new AppError<RpcReason>(
      'BATCH_TOO_LARGE',
      `items: ${items.length} items, at most ${itemsMax}`,
      {
        field: 'items',
        limit: String(itemsMax),
      },
    );
  }
  const valid: BatchItem[] = [];
  const errors: (AppError | null)[] = [];
  for (const item of items) {
    const problem = problemOf(item);
    errors.push(problem);
    if (problem !== null) continue;
    const { namespace, objectId, relation, subjectUserId: userId } = item;
    valid.push({ namespace, objectId, relation, userId });
  }
  return {
    valid,
    problems: errors.filter((error) => error !== null),
    resultsOf: (results) => {
      let next = 0;
      return errors.map((error) => {
        if (error !== null) return { allowed: false, error: error.message };
        const result = results[next];
        next += 1;
        if (result === undefined) throw new Error('a batch has one result per valid item');
        return { allowed: result.allowed, error: result.error };
      });
    },
  };
}

function problemOf(item: BatchCheckItem): AppError | null {
  try {
    checkObjectRelation(item);
    if (item.subjectUserId === '') throw subjectMissing();
    checkUserId('subject_user_id', item.subjectUserId);
    return null;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
