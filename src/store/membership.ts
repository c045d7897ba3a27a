import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Client } from 'pg';
import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';
import {
  type Registration,
  acknowledgeShared,
  becomeAlone,
  leaveInstances,
  registerInstance,
  renewInstance,
} from './instance-rows.ts';
import { connectMember } from './member-connection.ts';
import {
  acknowledged,
  becameAlone,
  ended,
  isAloneAt,
  type MemberState,
  type NextStatement,
  nextStatement,
  NOBODY,
  Pause,
  registered,
  registering,
  renewed,
} from './member-state.ts';
import { isRetryable, isSilence, refusalIn, storeError } from './pg-errors.ts';
import type { PostgresTarget } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

/** How long a registration lasts that nobody renews, in ms. */
export const LEASE_MS = 3_000;
/** Renewals in the time of a lease. */
const RENEWALS = 3;
const RETRY_MS = 200;
/** How long a start tries while nothing is heard of the server. */
const START_WAIT_MS = 15_000;
/** Of a lease: a server that hangs is noticed before the lease ends. */
const ANSWER_SHARE = 2 / 3;
/** So that a lease that is waited for has surely ended when it is looked at. */
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

export type MembershipEvents = {
  /** About to answer from memory: what is known of shards is to be forgotten. Must not throw. */
  readonly onBecomingAlone?: (() => void) | undefined;
  /** After every change of mode, connection or silence. Must not throw. */
  readonly onChange?: (() => void) | undefined;
  readonly onRenewed?: ((times: RenewalTimes) => void) | undefined;
  /** After every attempt to connect, register or renew that failed. Must not throw. */
  readonly onFailed?: ((error: unknown) => void) | undefined;
};

export type MembershipOptions = {
  readonly target: PostgresTarget;
  readonly region: string;
  /**
   * True when nobody else can reach the database (the embedded server, whose directory we hold): then
   * rows of earlier processes count for nothing, and alone never ends.
   */
  readonly isExclusive: boolean;
  readonly events?: MembershipEvents | undefined;
  /** Runs on each new connection, before anything else is asked of it. */
  readonly prepare?: ((client: Client) => Promise<unknown>) | undefined;
  readonly leaseMs?: number | undefined;
  /** The monotonic clock, in ms; for tests. */
  readonly nowMs?: (() => number) | undefined;
  readonly log?: StoreLog | undefined;
};

/** What has happened since the start. */
export type MembershipCounts = {
  readonly renewals: number;
  /** Registrations of this process that ended without its doing. */
  readonly losses: number;
  /** Rows of others that this process removed after their leases. */
  readonly fences: number;
  /** Write statements that were refused for their registration. */
  readonly refusals: number;
};

/**
 * This process as one of the instances on its database: registers, renews, and knows whether it is alone
 * (member-state.ts has the rules). Holds a connection of its own, on which one statement is under way at
 * most; a lost connection is made again for as long as it takes, and ends nothing by itself.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #leaseMs: number;
  readonly #nowMs: () => number;
  readonly #log: StoreLog;
  readonly #waiting = new Set<PromiseWithResolvers<void>>();
  #events: MembershipEvents;
  #state: MemberState = NOBODY;
  #client: Client | undefined;
  #isSilent = false;
  #isLeaving = false;
  #running: Promise<void> = Promise.resolve();
  #renewAtMs = 0;
  /** Before, it does not try to become alone. */
  #patientUntilMs = 0;
  readonly #pause = new Pause();
  #mode: MemberMode = 'none';
  #counts = { renewals: 0, losses: 0, fences: 0, refusals: 0 };

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#log = options.log ?? silentLog;
    this.#events = options.events ?? {};
  }

  /** Of the present registration; undefined: there is none. Changes with each registration. */
  get instanceId(): string | undefined {
    return this.#state.id;
  }

  /**
   * Whether no other instance can have written since what this one knows. Cost: one clock reading. Ask it
   * after the request was read, never before.
   */
  isAlone(): boolean {
    const { isAlone } = this.#state;
    return isAlone && (this.#options.isExclusive || isAloneAt(this.#state, this.#nowMs()));
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

  /** Rows of other instances, when they were last looked at. */
  get others(): number {
    return this.#state.others;
  }

  /** What is left of the time in which it may answer from memory, ms; 0 where it may not. */
  get claimLeftMs(): number {
    if (!this.#state.isAlone) return 0;
    return Math.max(0, this.#state.claimUntilMs - this.#nowMs());
  }

  get counts(): MembershipCounts {
    return this.#counts;
  }

  /** Whether its connection is there, as far as is known. */
  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  /** Whether the server stopped to answer while it is there: it hangs, or cannot be reached. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** From now on these are reported. */
  watch(events: MembershipEvents): void {
    this.#events = { ...this.#events, ...events };
  }

  /**
   * Registers and keeps the registration from then on. Resolves once registered, and alone where nobody
   * else is; writes may have to wait for others, up to a lease. Errors: STORE_UNAVAILABLE when a
   * release runs that must be alone; whatever the first connection fails with.
   */
  async start(): Promise<void> {
    const endMs = performance.now() + START_WAIT_MS;
    for (;;) {
      try {
        await this.#begin();
        break;
      } catch (error) {
        // A machine where everything starts at once answers late.
        if (!isSilence(error) || performance.now() >= endMs) throw error;
        this.#log('warn', 'instance_lease_not_renewed', { error: String(error) });
      }
    }
    this.#report();
    this.#running = this.#run();
  }

  /**
   * Resolves when `writeId` is there, or at the next change. Errors: STORE_UNAVAILABLE when the database
   * cannot be asked, or this instance has left.
   */
  async whenAdmitted(): Promise<void> {
    if (this.writeId !== undefined) return;
    if (this.#isLeaving) throw unavailable();
    const waiter = Promise.withResolvers<void>();
    this.#waiting.add(waiter);
    this.#pause.wake();
    await waiter.promise;
  }

  /** A write that was sent under `id` was refused. */
  refused(id: string | null): void {
    this.#counts.refusals++;
    if (id === null || this.#state.id !== id) return;
    this.#log('warn', 'instance_write_refused', { instance: id });
    this.#lose(id);
    this.#report();
    this.#pause.wake();
  }

  /** Gives the registration back: the last thing to do, after all writes have ended. Idempotent. */
  async leave(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#pause.wake();
    await this.#running;
    const { id } = this.#state;
    this.#state = NOBODY;
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) {
      // The row's lease ends by itself.
      if (id !== undefined) await leaveInstances(client, id).catch(() => undefined);
      await client.end().catch(() => undefined);
    }
    this.#report(unavailable());
  }

  async #begin(): Promise<void> {
    const client = await this.#connect(true);
    this.#client = client;
    try {
      do {
        if (this.#isLeaving) throw unavailable();
        await this.#turn(client);
      } while (this.#isUnsettled());
    } catch (error) {
      this.#drop(client);
      throw error;
    }
  }

  async #run(): Promise<void> {
    while (!this.#isLeaving) {
      let client = this.#client;
      const wasConnected = client !== undefined;
      try {
        client ??= await this.#reconnect();
        if (this.#isDue()) await this.#turn(client);
        this.#isSilent = false;
        this.#report();
        if (!this.#isUnsettled()) await this.#sleep(this.#renewAtMs - this.#nowMs());
      } catch (error) {
        this.#isSilent = isSilence(error);
        this.#log('warn', 'instance_lease_not_renewed', { error: String(error) });
        this.#events.onFailed?.(error);
        if (client !== undefined && refusalIn(error) !== undefined) {
          // The server answers, on this connection as on the next one.
          this.#report(asAppError(error));
          this.#pause.isWoken = false;
          await this.#sleep(RETRY_MS);
          continue;
        }
        // A connection that does not answer is as good as lost.
        if (client !== undefined) this.#drop(client);
        // Writes that wait are reported only once the database cannot be reached again either.
        this.#report(client === undefined ? asAppError(error) : undefined);
        // A wake from before this attempt was answered by it: a server that refuses is not asked without a pause.
        this.#pause.isWoken = false;
        if (!wasConnected) await this.#sleep(RETRY_MS);
      }
    }
  }

  /** Until then, or until woken. */
  async #sleep(ms: number): Promise<void> {
    if (!this.#isLeaving) await this.#pause.wait(ms);
  }

  #next(): NextStatement {
    const next = nextStatement(this.#state);
    return next === 'become alone' && this.#nowMs() < this.#patientUntilMs ? 'renew' : next;
  }

  /** Whether the next statement need not wait. */
  #isUnsettled(): boolean {
    return this.#next() !== 'renew';
  }

  #isDue(): boolean {
    return this.#isUnsettled() || this.#pause.isWoken || this.#nowMs() >= this.#renewAtMs;
  }

  /** One statement. */
  async #turn(client: Client): Promise<void> {
    const state = this.#state;
    const leaseMs = this.#leaseMs;
    const sentMs = this.#nowMs();
    this.#pause.isWoken = false;
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
        if (after.isAlone) this.#events.onBecomingAlone?.();
        this.#state = after;
        return;
      }
      case 'renew': {
        const answer = await renewInstance(client, state.id ?? '', leaseMs);
        if (this.#state.id !== state.id) return;
        if (answer === undefined) return this.#lose(state.id ?? '');
        this.#counts.renewals++;
        this.#state = renewed(this.#state, answer, sentMs, leaseMs);
        this.#note(answer, sentMs);
      }
    }
  }

  async #register(client: Client, sentMs: number): Promise<void> {
    const id = randomUUID();
    const { former } = this.#state;
    this.#state = registering(this.#state, id);
    const answer = await registerInstance(client, {
      id,
      region: this.#options.region,
      holder: `${hostname()} ${process.pid}`,
      leaseMs: this.#leaseMs,
      former,
      isExclusive: this.#options.isExclusive,
    });
    this.#state = registered(this.#state, id, answer);
    this.#log('info', 'instance_registered', { instance: id, others: answer.others });
    this.#note(answer, sentMs);
  }

  #note({ fenced, waitMs, databaseUs }: Registration, sentMs: number): void {
    if (fenced > 0) {
      this.#counts.fences += fenced;
      this.#log('warn', 'instances_fenced', { count: fenced });
    }
    const answeredMs = this.#nowMs();
    if (waitMs !== null) {
      this.#renewAtMs = Math.min(this.#renewAtMs, answeredMs + Math.max(0, waitMs) + WAIT_SLACK_MS);
    }
    this.#events.onRenewed?.({ sentMs, answeredMs, databaseUs });
  }

  #lose(id: string): void {
    if (this.#state.id !== id) return;
    this.#counts.losses++;
    this.#log('warn', 'instance_fenced', { instance: id });
    this.#state = ended(this.#state, id);
  }

  async #connect(isFirst: boolean): Promise<Client> {
    return await connectMember({
      target: this.#options.target,
      leaseMs: this.#leaseMs,
      answerMs: Math.ceil(this.#leaseMs * ANSWER_SHARE),
      isFirst,
      prepare: this.#options.prepare,
      onNotice: (about) => {
        if (about !== this.#state.id) this.#pause.wake();
      },
      onEnd: (client) => {
        this.#drop(client);
        this.#pause.wake();
      },
      log: this.#log,
    });
  }

  async #reconnect(): Promise<Client> {
    const client = await this.#connect(false);
    this.#client = client;
    this.#pause.isWoken = true;
    this.#log('info', 'instance_connection_remade', {});
    return client;
  }

  #drop(client: Client): void {
    if (this.#client === client) this.#client = undefined;
    client.end().catch(() => undefined);
    this.#report();
  }

  /** Notifies those who watch of a change, and those who wait that something is different. */
  #report(failure?: AppError): void {
    const { mode } = this;
    if (mode !== this.#mode) {
      this.#log('info', 'instance_mode', { mode, before: this.#mode, others: this.others });
      this.#mode = mode;
    }
    this.#events.onChange?.();
    if (failure === undefined && this.writeId === undefined) return;
    for (const waiter of this.#waiting) {
      if (this.writeId === undefined && failure !== undefined) waiter.reject(failure);
      else waiter.resolve();
    }
    this.#waiting.clear();
  }
}

function asAppError(error: unknown): AppError {
  const reported = storeError(error);
  return reported instanceof AppError ? reported : unavailable();
}

function unavailable(): AppError {
  return new AppError<SharedReason>('STORE_UNAVAILABLE', 'the database is not available');
}
