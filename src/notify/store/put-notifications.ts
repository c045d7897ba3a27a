import type { ClientBase } from 'pg';
import { assert } from '../../shared/assert.ts';
import type { PutResult } from '../model/notification-store.ts';
import type { NewNotification, Notification, UserKey } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import {
  DELIVERIES_COLUMN,
  NOTIFICATION_COLUMNS,
  notificationFromRow,
  channelOfBit,
  putMember,
  statusOfNumber,
  type NotificationRow,
} from './postgres-rows.ts';

type PutRow = {
  readonly item: number;
  readonly id: string;
  readonly sequence: string;
  readonly is_duplicate: boolean;
  readonly deliveries: readonly (readonly [string, number, number, string])[];
};
type StoredNotification = {
  readonly rows: readonly PutRow[];
  /** By id: those that a dedupe key of the batch named. */
  readonly earlier: ReadonlyMap<string, Notification>;
};

const PUT_NAME = 'notify-put';
const PUT_TEXT = 'select item, id, sequence, is_duplicate, deliveries from notify.put($1::jsonb)';
const NONE: ReadonlyMap<string, Notification> = new Map();

/**
 * `NotificationStore.put` in one call of `notify.put`: all or nothing; results in the order of `batch`. The function
 * gets them by user, so that batches lock the streams that they share in one order. Errors: STORE_UNAVAILABLE.
 */
export async function putNotifications(
  database: NotifyDatabase,
  batch: readonly NewNotification[],
): Promise<readonly PutResult[]> {
  const order = batch
    .map((_, index) => index)
    .sort((a, b) => compareUsers(batch[a] as NewNotification, batch[b] as NewNotification));
  const members = JSON.stringify(order.map((index) => putMember(batch[index] as NewNotification)));
  const hasKeys = batch.some(({ dedupeKey }) => dedupeKey !== '');
  const { rows, earlier }: StoredNotification = hasKeys
    ? await putWithKeys(database, members)
    : { rows: await database.queryRetried<PutRow>(PUT_NAME, PUT_TEXT, [members]), earlier: NONE };
  const results: PutResult[] = Array.from({ length: batch.length });
  for (const row of rows) {
    const index = order[row.item] as number;
    results[index] = putResult(batch[index] as NewNotification, row, earlier);
  }
  return results;
}

function putWithKeys(database: NotifyDatabase, members: string): Promise<StoredNotification> {
  return database.transaction(async (client) => {
    const { rows } = await client.query<PutRow>({
      name: PUT_NAME,
      text: PUT_TEXT,
      values: [members],
    });
    // Here, since the locks on their streams keep them from being purged.
    const repeated = rows.filter((row) => row.is_duplicate).map(({ id }) => id);
    return { rows, earlier: await notificationsByIds(client, repeated) };
  });
}

function putResult(
  request: NewNotification,
  row: PutRow,
  earlier: ReadonlyMap<string, Notification>,
): PutResult {
  if (!row.is_duplicate) {
    const { dedupeKey: _dedupeKey, ...rest } = request;
    const deliveries = row.deliveries.map(([endpointId, channel, status, lastError]) => ({
      channel: channelOfBit(channel),
      endpointId,
      status: statusOfNumber(status),
      attempts: 0,
      lastError,
    }));
    const sequence = Number(row.sequence);
    return {
      notification: { ...rest, sequence, readAtMs: null, deliveries },
      isDuplicate: false,
    };
  }
  const notification = earlier.get(row.id);
  assert(notification !== undefined, 'a duplicate is of a notification that is locked');
  return { notification, isDuplicate: true };
}

async function notificationsByIds(
  client: ClientBase,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Notification>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<NotificationRow>({
    name: 'notify-by-ids',
    text: `select ${NOTIFICATION_COLUMNS}, ${DELIVERIES_COLUMN} from notify.notification n
      where n.id = any($1::uuid[])`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, notificationFromRow(row)]));
}

function compareUsers(a: UserKey, b: UserKey): number {
  if (a.tenantId !== b.tenantId) return a.tenantId < b.tenantId ? -1 : 1;
  if (a.userId !== b.userId) return a.userId < b.userId ? -1 : 1;
  return 0;
}
