import type { Counter, Gauge } from 'prom-client';
import type { MetricStore } from '../observability/metric-store.ts';
import type { Membership, MembershipCounts } from '../store/membership.ts';
import { PG_REFUSALS } from '../store/pg-errors.ts';
import type { StoreRefusals } from '../store/store-refusals.ts';

/** What the registration of this process looks like, as metrics. */
export class MembershipMetrics {
  readonly #isAlone: Gauge;
  readonly #mayWrite: Gauge;
  readonly #members: Gauge;
  readonly #claimLeft: Gauge;
  readonly #counters: Readonly<Record<keyof MembershipCounts, Counter>>;
  readonly #refused: Counter<'reason'>;
  readonly #refusalsCounted = new Map<string, number>();
  #counted: MembershipCounts = { renewals: 0, losses: 0, fences: 0, refusals: 0 };

  constructor(store: MetricStore) {
    const gauge = (name: string, help: string): Gauge => store.gauge({ name, help });
    const counter = (name: string, help: string): Counter => store.counter({ name, help });
    this.#isAlone = gauge(
      'gatehouse_instance_alone',
      '1 while reads are answered from memory alone, 0 while they ask PostgreSQL for the head.',
    );
    this.#mayWrite = gauge('gatehouse_instance_may_write', '1 while this instance may write.');
    this.#members = gauge(
      'gatehouse_instances',
      'Instances registered on the database, with this one; 0 while it is not.',
    );
    this.#claimLeft = gauge(
      'gatehouse_instance_claim_left_seconds',
      'For how long an instance that is alone may answer from memory without a renewal.',
    );
    this.#refused = store.counter<'reason'>({
      name: 'gatehouse_postgres_refusals_total',
      help: 'Writes and connects that PostgreSQL refused until an operator does something, by reason.',
      labelNames: ['reason'],
    });
    for (const reason of PG_REFUSALS) this.#refused.inc({ reason }, 0);
    this.#counters = {
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
  }

  /** Before each scrape. */
  collect(membership: Membership, refusals: StoreRefusals): void {
    for (const [reason, count] of refusals.counts) {
      this.#refused.inc({ reason }, count - (this.#refusalsCounted.get(reason) ?? 0));
      this.#refusalsCounted.set(reason, count);
    }
    const isMember = membership.instanceId !== undefined;
    this.#isAlone.set(membership.isAlone() ? 1 : 0);
    this.#mayWrite.set(membership.mayCommit ? 1 : 0);
    this.#members.set(isMember ? membership.others + 1 : 0);
    this.#claimLeft.set(membership.claimLeftMs / 1000);
    const counts = { ...membership.counts };
    for (const [key, counter] of Object.entries(this.#counters)) {
      const name = key as keyof MembershipCounts;
      counter.inc(counts[name] - this.#counted[name]);
    }
    this.#counted = counts;
  }
}
