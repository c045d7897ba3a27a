import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Client } from 'pg';
import { isRetryable } from '../postgres/pg-errors.ts';
import type { StoreLog } from '../postgres/store-log.ts';
import {
  type Registration,
  acknowledgeShared,
  becomeAlone,
  registerInstance,
  renewInstance,
} from './instance-rows.ts';
import {
  acknowledged,
  becameAlone,
  ended,
  isAloneAt,
  type MemberState,
  type NextStatement,
  nextStatement,
  NOBODY,
  registered,
  registering,
  renewed,
} from './member-state.ts';

/** How long a registration lasts that nobody renews, in ms. */
export const LEASE_MS = 3_000;
/** Renewals in the time of a lease. */
const RENEWALS = 3;
/** Slack by which a lease that is waited for has surely ended when it is checked. */
const WAIT_SLACK_MS = 5;

/** `joining`: may not write yet. `none`: without a registration. */
export type MemberMode = 'none' | 'joining' | 'shared' | 'alone';

/** A renewal as far as clocks go: the database's clock was `databaseUs` between the two moments. */
export type RenewalTimes = {
  /** On the monotonic clock, ms. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** Microseconds since 1970. */
  readonly databaseUs: bigint;
};

/** Counts since the start. */
export type MembershipCounts = {
  readonly renewals: number;
  /** Registrations of this process that ended without its doing. */
  readonly losses: number;
  /** Rows of others that this process removed after their leases. */
  readonly fences: number;
  /** Write statements that were refused for their registration. */
  readonly refusals: number;
};

export type InstanceLeaseOptions = {
  readonly region: string;
  /** Nobody else can reach the database: rows of others count for nothing, and alone never ends. */
  readonly isExclusive: boolean;
  readonly leaseMs: number;
  /** The monotonic clock, in ms. */
  readonly nowMs: () => number;
  /** About to answer from memory. Must not throw. */
  readonly onBecomingAlone: () => void;
  readonly onRenewed: (times: RenewalTimes) => void;
  readonly log: StoreLog;
};

/**
 * The registration of this process and its lease: what they allow now, and the statements that keep them, one a turn
 * (member-state.ts has the rules).
 */
export class InstanceLease {
  readonly #options: InstanceLeaseOptions;
  #state: MemberState = NOBODY;
  #renewAtMs = 0;
  /** Before, it does not try to become alone. */
  #patientUntilMs = 0;
  #counts = { renewals: 0, losses: 0, fences: 0, refusals: 0 };

  constructor(options: InstanceLeaseOptions) {
    this.#options = options;
  }

  /** Id of the present registration; undefined if none. Changes with each registration. */
  get instanceId(): string | undefined {
    return this.#state.id;
  }

  /**
   * Whether no other instance can have written since what this one knows. Cost: one clock reading. Ask it
   * after the request was read, never before.
   */
  isAlone(): boolean {
    const { isAlone } = this.#state;
    return isAlone && (this.#options.isExclusive || isAloneAt(this.#state, this.#options.nowMs()));
  }

  /** The id to send writes under; undefined: nothing may be sent now. */
  get writeId(): string | undefined {
    return this.#state.mayWrite ? this.#state.id : undefined;
  }

  /** Whether writes may be sent. */
  get mayCommit(): boolean {
    return this.writeId !== undefined;
  }

  /** Whether others may read from the database what this instance, alone, does not know to be committed. */
  get isOvertaken(): boolean {
    return this.#state.isAlone && !this.#options.isExclusive;
  }

  get mode(): MemberMode {
    if (this.#state.id === undefined) return 'none';
    if (this.#state.isAlone) return 'alone';
    return this.#state.mayWrite ? 'shared' : 'joining';
  }

  /** Number of rows of other instances at the last read. */
  get others(): number {
    return this.#state.others;
  }

  /** Rest of the time in which it may answer from memory, ms; 0 where it may not. */
  get claimLeftMs(): number {
    if (!this.#state.isAlone) return 0;
    return Math.max(0, this.#state.claimUntilMs - this.#options.nowMs());
  }

  get counts(): MembershipCounts {
    return this.#counts;
  }

  /** When the next renewal is due, on the monotonic clock. */
  get renewAtMs(): number {
    return this.#renewAtMs;
  }

  /** Whether the next statement need not wait. */
  get isUnsettled(): boolean {
    return this.#next() !== 'renew';
  }

  /** A write that was sent under `id` was refused. Returns whether that ends the registration. */
  refused(id: string | null): boolean {
    this.#counts.refusals++;
    if (id === null || this.#state.id !== id) return false;
    this.#options.log('warn', 'instance_write_refused', { instance: id });
    this.#lose(id);
    return true;
  }

  /** The registration counts for nothing from now on; its id, for the row to be removed. */
  release(): string | undefined {
    const { id } = this.#state;
    this.#state = NOBODY;
    return id;
  }

  /** One statement. */
  async turn(client: Client): Promise<void> {
    const state = this.#state;
    const { leaseMs } = this.#options;
    const sentMs = this.#options.nowMs();
    this.#renewAtMs = sentMs + leaseMs / RENEWALS;
    switch (this.#next()) {
      case 'register':
        return await this.#register(client, sentMs);
      case 'acknowledge':
        await acknowledgeShared(client, state.id ?? '', state.owedTerm ?? 0);
        if (this.#state.id === state.id) this.#state = acknowledged(this.#state);
        return;
      case 'become alone': {
        const term = await becomeAlone(client, state.id ?? '', leaseMs).catch((error: unknown) => {
          if (!isRetryable(error)) throw error;
          // Writes that were let in have not ended yet; others wait for us meanwhile.
          this.#patientUntilMs = this.#renewAtMs;
          return undefined;
        });
        if (this.#state.id !== state.id || this.#patientUntilMs > sentMs) return;
        const after = becameAlone(this.#state, term, sentMs, leaseMs);
        if (after.isAlone) this.#options.onBecomingAlone();
        this.#state = after;
        return;
      }
      case 'renew': {
        const answer = await renewInstance(client, state.id ?? '', leaseMs);
        if (this.#state.id !== state.id) return;
        if (answer === undefined) return this.#lose(state.id ?? '');
        this.#counts.renewals++;
        this.#state = renewed(this.#state, answer, sentMs, leaseMs);
        this.#countFences(answer, sentMs);
      }
    }
  }

  #next(): NextStatement {
    const next = nextStatement(this.#state);
    return next === 'become alone' && this.#options.nowMs() < this.#patientUntilMs ? 'renew' : next;
  }

  async #register(client: Client, sentMs: number): Promise<void> {
    const id = randomUUID();
    const { former } = this.#state;
    this.#state = registering(this.#state, id);
    const answer = await registerInstance(client, {
      id,
      region: this.#options.region,
      holder: `${hostname()} ${process.pid}`,
      leaseMs: this.#options.leaseMs,
      former,
      isExclusive: this.#options.isExclusive,
    });
    this.#state = registered(this.#state, id, answer);
    this.#options.log('info', 'instance_registered', { instance: id, others: answer.others });
    this.#countFences(answer, sentMs);
  }

  #countFences({ fenced, waitMs, databaseUs }: Registration, sentMs: number): void {
    if (fenced > 0) {
      this.#counts.fences += fenced;
      this.#options.log('warn', 'instances_fenced', { count: fenced });
    }
    const answeredMs = this.#options.nowMs();
    if (waitMs !== null) {
      this.#renewAtMs = Math.min(this.#renewAtMs, answeredMs + Math.max(0, waitMs) + WAIT_SLACK_MS);
    }
    this.#options.onRenewed({ sentMs, answeredMs, databaseUs });
  }

  #lose(id: string): void {
    if (this.#state.id !== id) return;
    this.#counts.losses++;
    this.#options.log('warn', 'instance_fenced', { instance: id });
    this.#state = ended(this.#state, id);
  }
}
