import type { Client } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { isSilence, refusalIn, storeError } from '../postgres/pg-errors.ts';
import type { PostgresTarget } from '../postgres/pool.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';
import { InstanceLease, LEASE_MS, type MemberMode, type RenewalTimes } from './instance-lease.ts';
import { leaveInstances } from './instance-rows.ts';
import { connectMember } from './member-connection.ts';
import { Pause } from './member-state.ts';

const RETRY_MS = 200;
/** How long a start tries while nothing is heard of the server. */
const START_WAIT_MS = 15_000;
/**
 * Share of a lease within which an answer must come: a server that hangs is noticed before the
 * lease ends.
 */
const ANSWER_SHARE = 2 / 3;

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

/**
 * This process as one of the instances on its database: keeps its lease, and lets writes in by it. Holds a
 * connection of its own, on which one statement is under way at most; a lost connection is made again for
 * as long as it takes, and ends nothing by itself.
 */
export class InstanceMembership {
  /** Lease that decides what may be done without asking the others. */
  readonly lease: InstanceLease;
  readonly #options: MembershipOptions;
  readonly #leaseMs: number;
  readonly #nowMs: () => number;
  readonly #log: StoreLog;
  readonly #waiting = new Set<PromiseWithResolvers<void>>();
  #events: MembershipEvents;
  #client: Client | undefined;
  #isSilent = false;
  #isLeaving = false;
  #running: Promise<void> = Promise.resolve();
  readonly #pause = new Pause();
  #mode: MemberMode = 'none';

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#log = options.log ?? silentLog;
    this.#events = options.events ?? {};
    this.lease = new InstanceLease({
      region: options.region,
      isExclusive: options.isExclusive,
      leaseMs: this.#leaseMs,
      nowMs: this.#nowMs,
      onBecomingAlone: () => this.#events.onBecomingAlone?.(),
      onRenewed: (times) => this.#events.onRenewed?.(times),
      log: this.#log,
    });
  }

  get writeId(): string | undefined {
    return this.lease.writeId;
  }

  get isOvertaken(): boolean {
    return this.lease.isOvertaken;
  }

  /** Whether its connection is there, as far as is known. */
  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  /** Whether the server stopped to answer while it is there: it hangs, or cannot be reached. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Sets the callbacks for later events. */
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
    if (!this.lease.refused(id)) return;
    this.#report();
    this.#pause.wake();
  }

  /** Gives the registration back: the last thing to do, after all writes have ended. Idempotent. */
  async leave(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#pause.wake();
    await this.#running;
    const id = this.lease.release();
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
      } while (this.lease.isUnsettled);
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
        if (!this.lease.isUnsettled) await this.#sleep(this.lease.renewAtMs - this.#nowMs());
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
        // Waiting writes get the error only once the database cannot be reached again either.
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

  #isDue(): boolean {
    return this.lease.isUnsettled || this.#pause.isWoken || this.#nowMs() >= this.lease.renewAtMs;
  }

  /** One statement. */
  #turn(client: Client): Promise<void> {
    this.#pause.isWoken = false;
    return this.lease.turn(client);
  }

  async #connect(isFirst: boolean): Promise<Client> {
    return await connectMember({
      target: this.#options.target,
      leaseMs: this.#leaseMs,
      answerMs: Math.ceil(this.#leaseMs * ANSWER_SHARE),
      isFirst,
      prepare: this.#options.prepare,
      onNotice: (about) => {
        if (about !== this.lease.instanceId) this.#pause.wake();
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
    const { mode, others } = this.lease;
    if (mode !== this.#mode) {
      this.#log('info', 'instance_mode', { mode, before: this.#mode, others });
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
