import type { HotCounter, MetricStore } from '../observability/metric-store.ts';
import type { NotifierCounts } from '../services/change-notifier.ts';
import type { FeedCounts } from '../store/change-feed.ts';

/** What came by the change feed, and what was sent by it. */
export type FeedMetrics = {
  readonly feed: Readonly<
    Record<'held' | 'dropped' | 'own' | 'unknown' | 'sent' | 'lost' | 'notifications', HotCounter>
  >;
};

export function createFeedMetrics(store: MetricStore): FeedMetrics {
  const heard = store.counters({
    name: 'gatehouse_feed_hints_total',
    help: 'Hints of other instances, by whether their shard may be held here.',
  });
  const skipped = store.counters({
    name: 'gatehouse_feed_skipped_notifications_total',
    help: 'Notifications that were not read: its own, and those that it does not understand.',
  });
  const reported = store.counters({
    name: 'gatehouse_notify_hints_total',
    help: 'Hints for other instances, sent or lost.',
  });
  const notifications = store.counters({
    name: 'gatehouse_notify_notifications_total',
    help: 'Notifications that carried the hints that were sent.',
  });
  return {
    feed: {
      held: heard.cell({ outcome: 'held' }),
      dropped: heard.cell({ outcome: 'dropped' }),
      own: skipped.cell({ reason: 'own' }),
      unknown: skipped.cell({ reason: 'unknown' }),
      sent: reported.cell({ outcome: 'sent' }),
      lost: reported.cell({ outcome: 'lost' }),
      notifications: notifications.cell({}),
    },
  };
}

/** Brings the counters up to what feed and notifier have counted. */
export function showFeed(
  { feed }: FeedMetrics,
  heard: Readonly<FeedCounts>,
  reported: NotifierCounts,
): void {
  const { hints: sent, lost, notifications } = reported;
  const counted = { ...heard, sent, lost, notifications };
  for (const [name, cell] of Object.entries(feed)) {
    cell.add(counted[name as keyof typeof counted] - cell.value);
  }
}
