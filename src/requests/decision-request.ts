import type {
  BatchCheckItem,
  BatchCheckRequest,
  ListObjectsRequest,
} from '../gen/workspace/v1/authz_service_pb.ts';
import { checkNamespace, checkRelation, checkTenantId, checkUserId } from '../model/names.ts';
import type { AuthzReason } from '../model/reasons.ts';
import type { BatchItem, UserObjects } from '../protocol/shard-client.ts';
import { AppError } from '../shared/app-error.ts';
import { checkObjectRelation, subjectMissing } from './check-request.ts';

/** A valid item of a BatchCheck, or the error that Check would have returned. */
export type CheckedItem = BatchItem | AppError;

/** Number of items checked in one step. */
const ITEMS_PER_STEP = 64;

/** Rejects a BatchCheck that is invalid as a whole. Errors: BATCH_TOO_LARGE; FIELD_INVALID for the tenant. */
export function assertBatch({ items, tenantId }: BatchCheckRequest, itemsMax: number): void {
  const { length } = items;
  if (length > itemsMax) {
    const metadata = { field: 'items', limit: String(itemsMax) };
    const problem = `items: ${length} items, at most ${itemsMax}`;
    throw new AppError<AuthzReason>('BATCH_TOO_LARGE', problem, metadata);
  }
  checkTenantId('tenant_id', tenantId);
}

/** Checks each item of a BatchCheck, in steps that the caller runs to the end. O(items). */
export function* checkedItems(
  items: readonly BatchCheckItem[],
): Generator<void, readonly CheckedItem[]> {
  const checked: CheckedItem[] = [];
  for (const item of items) {
    checked.push(checkedItem(item));
    if (checked.length % ITEMS_PER_STEP === 0) yield;
  }
  return checked;
}

/** Checks one item of a BatchCheck. Returns the item, or its error. */
export function checkedItem(item: BatchCheckItem): CheckedItem {
  try {
    checkObjectRelation(item);
    if (item.subjectUserId === '') throw subjectMissing();
    checkUserId('subject_user_id', item.subjectUserId);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  const { namespace, objectId, relation, subjectUserId: userId } = item;
  return { namespace, objectId, relation, userId };
}

/** Checks the arguments of a ListObjects. Errors: FIELD_REQUIRED, FIELD_INVALID naming the first bad field. */
export function listedObjects(request: ListObjectsRequest): UserObjects {
  const { namespace, relation, subjectUserId: userId } = request;
  checkNamespace('namespace', namespace);
  checkRelation('relation', relation);
  checkUserId('subject_user_id', userId);
  checkTenantId('tenant_id', request.tenantId);
  return { namespace, relation, userId };
}
