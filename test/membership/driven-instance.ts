import type { Client, Pool } from 'pg';
import {
  HeadRevisions,
  type HeadRevisionRead,
  put,
} from '../../src/services/reads/head-revisions.ts';
import { TupleWriter } from '../../src/services/writes/tuple-writer.ts';
import { IdSource } from '../../src/shared/ids.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { InstanceMembership } from '../../src/store/membership/membership.ts';
import { createPool } from '../../src/store/postgres/pool.ts';
import { selectHeadRevisions } from '../../src/store/sql/reads/select-head-revisions.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { NO_WRITE_RULES } from '../support/write-rules.ts';

/** Long: leases end when the test says so. */
export const LEASE_MS = 3_600_000;
const SHARD = { projectId: 'p', tenantId: 't' };

/** Parts of an instance that can be left out, to see that the walk finds it. */
export type Fault = 'heads are not forgotten' | 'commits are not hidden' | 'the clock stands still';

/** A statement that the code has sent, and that goes on only when it is told to. */
export type Held = {
  readonly name: string;
  phase: 'sent' | 'done';
  /** Lets the database do it; resolves when it has, with its outcome kept back. */
  execute(): Promise<void>;
  /** Gives the outcome to the code. */
  answer(): void;
  /** The connection breaks. */
  lose(): void;
};

type Query = (...args: unknown[]) => unknown;
type Socket = { destroy(): void };

/**
 * The production code of one instance (membership, heads, writer) on a real database, whose statements
 * are held back until the test lets them go on, and whose clock the test moves.
 */
export class DrivenInstance {
  readonly held = new Set<Held>();
  readonly heads = new HeadRevisions({ entriesMax: 100 });
  readonly membership: InstanceMembership;
  readonly writer: TupleWriter;
  readonly #pool: Pool;
  readonly #database: TestDatabase;
  readonly #clients = new Set<Client>();
  #nowMs = 0;
  #isFree = true;

  constructor(database: TestDatabase, faults: ReadonlySet<Fault>) {
    this.#database = database;
    this.membership = new InstanceMembership({
      target: database.target,
      region: '',
      isExclusive: false,
      leaseMs: LEASE_MS,
      nowMs: () => (faults.has('the clock stands still') ? 0 : this.#nowMs),
      prepare: (client) => {
        this.#watch(client);
        return Promise.resolve();
      },
      events: {
        onBecomingAlone: () => {
          if (!faults.has('commits are not hidden')) this.writer.hideOpenCommits();
          if (!faults.has('heads are not forgotten')) this.heads.forgetAll();
        },
      },
    });
    this.#pool = createPool(database.target, { max: 3, applicationName: 'driven' });
    this.#pool.on('connect', (client) => this.#watch(client as unknown as Client));
    const { membership } = this;
    const unhidden = {
      get writeId() {
        return membership.writeId;
      },
      isOvertaken: false,
      whenAdmitted: () => membership.whenAdmitted(),
      refused: (id: string | null) => membership.refused(id),
    };
    this.writer = new TupleWriter({
      pool: this.#pool,
      admission: faults.has('commits are not hidden') ? unhidden : membership,
      rules: NO_WRITE_RULES,
      clock: systemClock,
      ids: new IdSource(systemClock),
      headRevisions: this.heads,
      committed: { onCommitted: () => undefined },
      lanes: 1,
      queuedWritesMax: 10,
      queuedUpdatesMax: 10,
      groupWritesMax: 10,
      groupUpdatesMax: 10,
      writeTimeoutMs: 60_000,
      answerTimeoutMs: 60_000,
      attemptsMax: 100,
      retryDelayMs: 1,
    });
  }

  /** The time of a claim passes. */
  passClaim(): void {
    this.#nowMs += LEASE_MS;
  }

  /** Writes one tuple; the revision that was acknowledged. */
  async write(objectId: string): Promise<number> {
    const tuple = {
      namespace: 'n',
      objectId,
      relation: 'r',
      subject: { kind: 'user', userId: 'u' },
    } as const;
    const { revision } = await this.writer.write(SHARD, [{ op: 'insert', tuple }], {
      rpc: 'Test',
      actingUserId: null,
      requestId: '',
      deadlineMs: Infinity,
    });
    return revision;
  }

  /** What a read would answer from memory now; undefined: it would ask the database. */
  peek(): number | undefined {
    if (!this.membership.lease.isAlone()) return undefined;
    return this.heads.peek(SHARD.projectId, SHARD.tenantId)?.minRevision;
  }

  /** A read that asks: looks now, and is answered when the returned function is called. */
  async look(): Promise<() => number> {
    const look: HeadRevisionRead = { shard: SHARD, raised: undefined, isForgotten: false };
    const looks = new Map<string, Map<string, HeadRevisionRead>>();
    put(looks, SHARD.projectId, SHARD.tenantId, look);
    this.heads.sent(looks);
    const [row] = await selectHeadRevisions(this.#database.pool, [SHARD]);
    return () => {
      const found = {
        epoch: row?.epoch ?? 0,
        revision: row?.revision ?? 0,
        forkId: '',
        lost: undefined,
      };
      const head = this.heads.install(look, found);
      this.heads.ended(looks);
      return head.minRevision;
    };
  }

  /** From now on statements are held back. */
  hold(): void {
    this.#isFree = false;
  }

  /** Every statement goes on by itself from now on. */
  free(): void {
    this.#isFree = true;
    for (const statement of this.held) {
      if (statement.phase === 'done') statement.answer();
      else void statement.execute().then(() => statement.answer());
    }
  }

  /** Ends without a word: what the database has not been told is lost. */
  async crash(): Promise<void> {
    this.#isFree = true;
    for (const client of this.#clients) socketOf(client).destroy();
    for (const statement of this.held) statement.lose();
    const leaving = this.membership.leave();
    await this.writer.close(0);
    // A lane that was cut off gives its connection back to nobody.
    this.#pool.end().catch(() => undefined);
    await leaving;
  }

  async stop(): Promise<void> {
    await this.writer.close(10_000);
    await this.#pool.end();
    await this.membership.leave();
  }

  #watch(client: Client): void {
    this.#clients.add(client);
    client.once('end', () => this.#clients.delete(client));
    const send = client.query.bind(client) as unknown as Query;
    const query = (...args: unknown[]): unknown => {
      const name = /gatehouse_(?:register|renew|acknowledge|become_alone|write)/.exec(
        typeof args[0] === 'string' ? args[0] : String((args[0] as { text?: string }).text),
      )?.[0];
      if (name === undefined || this.#isFree) return send(...args);
      return this.#holdBack(name, () => send(...args) as Promise<unknown>, socketOf(client));
    };
    client.query = query as unknown as Client['query'];
  }

  #holdBack(name: string, send: () => Promise<unknown>, socket: Socket): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    let settle = (): void => undefined;
    const statement: Held = {
      name,
      phase: 'sent',
      execute: async () => {
        try {
          const result = await send();
          settle = () => resolve(result);
        } catch (error) {
          settle = () => reject(error);
        }
        statement.phase = 'done';
      },
      answer: () => {
        this.held.delete(statement);
        settle();
      },
      lose: () => {
        this.held.delete(statement);
        socket.destroy();
        reject(new Error('Connection terminated unexpectedly'));
      },
    };
    this.held.add(statement);
    return promise;
  }
}

function socketOf(client: Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
