import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { BatchCheckItemSchema } from '../gen/workspace/v1/authz_service_pb.ts';
import { AppError } from '../shared/app-error.ts';
import { checkedItem } from './decision-request.ts';

const ITEM = { namespace: 'doc', objectId: 'a', relation: 'viewer', subjectUserId: 'u' };

test.each([
  [{ namespace: '' }, 'FIELD_REQUIRED', 'namespace'],
  [{ namespace: 'Doc' }, 'FIELD_INVALID', 'namespace'],
  [{ objectId: 'a#b' }, 'FIELD_INVALID', 'object_id'],
  [{ objectId: 'x'.repeat(257) }, 'FIELD_INVALID', 'object_id'],
  [{ relation: '' }, 'FIELD_REQUIRED', 'relation'],
  [{ subjectUserId: '' }, 'FIELD_REQUIRED', 'subject_user_id'],
  [{ subjectUserId: 'a\n' }, 'FIELD_INVALID', 'subject_user_id'],
])('an item with %j: %s of its field, without a stack', (wrong, reason, field) => {
  const error = checkedItem(create(BatchCheckItemSchema, { ...ITEM, ...wrong }));
  if (!(error instanceof AppError)) throw new Error('the item is not valid');
  expect(error).toMatchObject({ reason, metadata: { field } });
  expect(error.stack).not.toContain('\n');
});

test('a valid item: what it asks', () => {
  const { subjectUserId: userId, ...object } = ITEM;
  expect(checkedItem(create(BatchCheckItemSchema, ITEM))).toEqual({ ...object, userId });
});
