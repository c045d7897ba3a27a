import { expect } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { type AppError } from '../../src/shared/app-error.ts';
import type { ReadJob, JobShard } from '../../src/workers/jobs/job.ts';
import { type ActorHost, ShardActor } from '../../src/workers/shard/shard-actor.ts';
import { packingIndex } from './folding-index.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import { viewer } from './pool-fixture.ts';

export const SHARD: ShardKey = { projectId: 'p', tenantId: 't' };

export type Want = Partial<
  Pick<ReadJob, 'minRevision' | 'deadlineMs' | 'isDeadlineStated' | 'waitUntilMs' | 'isLong'> & {
    epoch: number;
    settingsVersion: number;
    forkId: string;
    isHeldOnly: boolean;
    slices: number;
    throws: unknown;
    isReadFirst: boolean;
    /** Slices that it takes to read. */
    readSlices: number;
    readThrows: unknown;
  }
>;

/** A job that notes what it saw: the watermark at each slice, or why it failed. */
export class Probe implements ReadJob {
  readonly scope;
  readonly minRevision: number;
  readonly deadlineMs: number;
  readonly isDeadlineStated: boolean;
  readonly waitUntilMs: number;
  readonly isLong: boolean;
  isCancelled = false;
  model = null;
  hasDropped = false;
  seen: number[] = [];
  reason: string | undefined;
  error: AppError | undefined;
  restarts = 0;
  readonly requestId: number;
  readonly #actor: ShardActor;
  #slices: number;
  readonly #throws: unknown;
  readonly isReadFirst: boolean;
  readonly #readThrows: unknown;
  #readSlices: number;
  /** Slices in which it was read. */
  reads = 0;
  isDropped = false;

  constructor(actor: ShardActor, requestId: number, want: Want) {
    this.requestId = requestId;
    this.#actor = actor;
    this.scope = {
      ...SHARD,
      modelVersion: 1,
      readBudget: 1,
      settingsVersion: want.settingsVersion ?? 1,
      epoch: want.epoch ?? 1,
      forkId: want.forkId ?? '',
      isHeldOnly: want.isHeldOnly ?? false,
      expectedProjectId: '',
      expectedTenantId: '',
    };
    this.minRevision = want.minRevision ?? 0;
    this.deadlineMs = want.deadlineMs ?? Infinity;
    this.isDeadlineStated = want.isDeadlineStated ?? false;
    this.waitUntilMs = want.waitUntilMs ?? Infinity;
    this.isLong = want.isLong ?? false;
    this.#slices = want.slices ?? 1;
    this.#throws = want.throws;
    this.isReadFirst = want.isReadFirst ?? false;
    this.#readSlices = want.readSlices ?? 1;
    this.#readThrows = want.readThrows;
  }

  read(): boolean {
    this.reads += 1;
    this.#readSlices -= 1;
    if (this.#readSlices > 0) return false;
    if (this.#readThrows !== undefined) throw this.#readThrows;
    return true;
  }

  drop(): void {
    this.isDropped = true;
  }

  run(shard: JobShard): 'done' | 'more' {
    if (this.#throws !== undefined) throw this.#throws;
    expect(shard.index).toBe(this.#actor.index);
    this.seen.push(this.#actor.watermark);
    this.#slices -= 1;
    return this.#slices > 0 ? 'more' : 'done';
  }

  restart(): void {
    this.restarts += 1;
  }

  fail(error: AppError): void {
    expect(this.reason).toBeUndefined();
    this.reason = error.reason;
    this.error = error;
  }
}

/** An actor over a store in memory; nothing runs but what a test asks for. */
export function start() {
  const source = new MemoryShardSource();
  source.rowsPerSlice = 1e9;
  const reports: string[] = [];
  const counts: Record<string, number> = { load: 0, loadFailure: 0, catchUp: 0 };
  /** What the host was told, in order. */
  const told: string[] = [];
  /** Set by a test that counts looks at the clock. */
  const time: { nowMs: number | undefined } = { nowMs: undefined };
  const host: ActorHost = {
    clock: { nowMs: () => 0, monotonicMs: () => time.nowMs ?? performance.now() },
    source,
    loadTimeoutMs: 10_000,
    createIndex: (user) => packingIndex(user),
    withLoadSlot: (load) => load(),
    failed: (error) => {
      throw error;
    },
    cacheBytesOf: () => 1_000_000,
    runnable: () => void told.push('runnable'),
    longRunnable: () => void told.push('longRunnable'),
    settled: () => void told.push('settled'),
    counted: (what) => {
      counts[what] = (counts[what] ?? 0) + 1;
    },
    report: (event) => void reports.push(event),
  };
  const actor = new ShardActor(SHARD, host);
  let jobs = 0;
  const ask = (want: Want = {}): Probe => {
    const probe = new Probe(actor, ++jobs, want);
    actor.submit(probe);
    return probe;
  };
  const runShort = (): boolean => actor.runShort(Infinity, Infinity, () => undefined);
  /** One slice of one long evaluation: the slice has ended when it is looked at. */
  const runLong = (): boolean => actor.runLong(-Infinity, () => undefined);
  const commit = (id: string) => source.commit(SHARD, [viewer('insert', id, 'u')]);
  const ready = () => expect.poll(() => actor.state, { interval: 2 }).toBe('ready');
  const load = async (revisions: number): Promise<void> => {
    for (let i = 0; i < revisions; i++) commit(`base${i}`);
    ask();
    await ready();
    runShort();
    expect(actor.watermark).toBe(revisions);
  };
  const take = (): string[] => told.splice(0);
  return {
    actor,
    source,
    time,
    take,
    reports,
    counts,
    ask,
    runShort,
    runLong,
    commit,
    ready,
    load,
  };
}

/** Lets every promise that is settled go on. */
export const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
};

/** Holds the reads of a store until told. */
export function gate(source: MemoryShardSource) {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  source.fault = () => opened;
  return () => {
    source.fault = () => Promise.resolve();
    open();
  };
}
