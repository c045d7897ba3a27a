import type { MetricStore } from '../../observability/metric-store.ts';
import type { NotifierCounts } from '../../services/writes/change-notifier.ts';
import { entriesOf, recordOf } from '../../shared/record.ts';
import type { DatabaseTime } from '../../shared/time/database-clock.ts';
import type { FeedCounts } from '../../store/feed/change-feed.ts';
import type { InstanceLease } from '../../store/membership/instance-lease.ts';
import { PG_REFUSALS } from '../../store/postgres/pg-errors.ts';
import type { StoreRefusals } from '../../store/postgres/store-refusals.ts';
import { DURATION_BOUNDS_SECONDS } from './decision-metrics.ts';

/** Series of what is between this process and PostgreSQL: connections, writes, hints, time and registration. */
export function createDatabaseMetrics(store: MetricStore) {
  const gauge = (name: string, help: string) => store.gauge({ name, help });
  const durations = store.histograms(
    {
      name: 'gatehouse_write_duration_seconds',
      help: 'Writes from their arrival until they were answered, by outcome.',
    },
    DURATION_BOUNDS_SECONDS,
  );
  const upkeepRuns = store.counter({
    name: 'gatehouse_upkeep_runs_total',
    help: 'Runs of work that one instance at a time does for all, by outcome.',
    labelNames: ['work', 'outcome'],
  });
  // Series that do not move can be seen.
  for (const work of ['purge', 'retention', 'bulk']) {
    for (const outcome of ['done', 'elsewhere', 'failed']) upkeepRuns.inc({ work, outcome }, 0);
  }
  return {
    poolConnections: gauge('gatehouse_pg_pool_connections', 'Connections open to PostgreSQL.'),
    poolIdle: gauge('gatehouse_pg_pool_idle_connections', 'Connections that nobody uses.'),
    poolWaiting: gauge('gatehouse_pg_pool_waiting_requests', 'Callers waiting for a connection.'),
    writeQueueDepth: gauge('gatehouse_write_queue_requests', 'Writes that wait or are under way.'),
    /** Seconds. `refused`: not committed, or not known to be. */
    writeDuration: recordOf(['committed', 'refused'], (outcome) => durations.cell({ outcome })),
    commits: store.counter({
      name: 'gatehouse_commits_total',
      help: 'Write transactions committed.',
    }),
    upkeepRuns,
    feed: feedMetrics(store),
    clock: clockMetrics(store),
    membership: membershipMetrics(store),
  };
}

/** Metrics of what the change feed received and sent. */
function feedMetrics(store: MetricStore) {
  const reconnects = store.counter({
    name: 'gatehouse_feed_reconnects_total',
    help: 'Times that the connection of the change feed was lost.',
  });
  const connected = store.gauge({
    name: 'gatehouse_feed_connected',
    help: '1 while the change feed listens, else 0.',
  });
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
  const cells = {
    held: heard.cell({ outcome: 'held' }),
    dropped: heard.cell({ outcome: 'dropped' }),
    own: skipped.cell({ reason: 'own' }),
    unknown: skipped.cell({ reason: 'unknown' }),
    hints: reported.cell({ outcome: 'sent' }),
    lost: reported.cell({ outcome: 'lost' }),
    notifications: notifications.cell({}),
  };
  return {
    connected: (isConnected: boolean): void => {
      connected.set(isConnected ? 1 : 0);
      if (!isConnected) reconnects.inc();
    },
    /** Shows the counts of feed and notifier. */
    show: (feed: Readonly<FeedCounts>, notifier: NotifierCounts): void => {
      const totals = { ...feed, ...notifier };
      for (const [name, cell] of entriesOf(cells)) cell.raiseTo(totals[name]);
    },
  };
}

/** How well the database's time is known. */
function clockMetrics(store: MetricStore) {
  const gauge = (name: string, help: string) => store.gauge({ name, help });
  const uncertainty = gauge(
    'gatehouse_clock_uncertainty_seconds',
    "How far from the database's the time may be by which expiry is decided.",
  );
  const offset = gauge(
    'gatehouse_clock_offset_seconds',
    "What the database's clock shows more than the wall clock of this machine.",
  );
  const held = gauge(
    'gatehouse_clock_held_seconds',
    'For how long time stands still, since the clock of the database went back.',
  );
  const steps = gauge(
    'gatehouse_clock_steps',
    'How often the clock of the database was found to have been set since the start.',
  );
  return {
    show: (time: DatabaseTime): void => {
      uncertainty.set(time.uncertaintyMs / 1000);
      offset.set(time.wallOffsetMs / 1000);
      held.set(time.heldMs / 1000);
      steps.set(time.steps);
    },
  };
}

/** Metrics of this process's registration, and of the refusals of PostgreSQL. */
function membershipMetrics(store: MetricStore) {
  const gauge = (name: string, help: string) => store.gauge({ name, help });
  const counter = (name: string, help: string) => store.counters({ name, help }).cell({});
  const isAlone = gauge(
    'gatehouse_instance_alone',
    '1 while reads are answered from memory alone, 0 while they ask PostgreSQL for the head.',
  );
  const mayWrite = gauge('gatehouse_instance_may_write', '1 while this instance may write.');
  const members = gauge(
    'gatehouse_instances',
    'Instances registered on the database, with this one; 0 while it is not.',
  );
  const claimLeft = gauge(
    'gatehouse_instance_claim_left_seconds',
    'For how long an instance that is alone may answer from memory without a renewal.',
  );
  const refused = store.counters({
    name: 'gatehouse_postgres_refusals_total',
    help: 'Writes and connects that PostgreSQL refused until an operator does something, by reason.',
  });
  const refusalsOf = recordOf(PG_REFUSALS, (reason) => refused.cell({ reason }));
  const counters = {
    renewals: counter('gatehouse_instance_renewals_total', 'Renewals of the own lease.'),
    losses: counter(
      'gatehouse_instance_losses_total',
      'Registrations of this process that others ended after its lease.',
    ),
    fences: counter(
      'gatehouse_instance_fences_total',
      'Registrations of others that this process ended after their leases.',
    ),
    refusals: counter(
      'gatehouse_write_resends_total',
      'Write statements refused for their registration, which were sent again under the next one.',
    ),
  };
  return {
    show: (lease: InstanceLease, refusals: StoreRefusals): void => {
      for (const [reason, count] of refusals.counts) refusalsOf[reason].raiseTo(count);
      isAlone.set(lease.isAlone() ? 1 : 0);
      mayWrite.set(lease.mayCommit ? 1 : 0);
      members.set(lease.instanceId === undefined ? 0 : lease.others + 1);
      claimLeft.set(lease.claimLeftMs / 1000);
      for (const [name, cell] of entriesOf(counters)) cell.raiseTo(lease.counts[name]);
    },
  };
}
