import { encodeSseEvent } from '../../http/sse-stream.ts';
import type { Notification } from '../model/notification.ts';

/** The wire form of a notification on a stream. O(its text), allocates. */
export function frameOf(notification: Notification): string {
  const data = JSON.stringify({
    id: notification.id,
    sequence: notification.sequence,
    title: notification.title,
    body: notification.body,
    data: notification.data,
    created_at: new Date(notification.createdAtMs).toISOString(),
    read_at: notification.readAtMs === null ? null : new Date(notification.readAtMs).toISOString(),
  });
  return encodeSseEvent({ id: String(notification.sequence), event: 'notification', data });
}
