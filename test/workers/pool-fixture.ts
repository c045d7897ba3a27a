import type { CheckQuery, ShardKey, TupleChange } from '../../src/model/relation-tuple.ts';
import type { WorkerStats } from '../../src/protocol/messages.ts';
import type {
  BatchItem,
  RawAnswer,
  RawMethod,
  ReadScope,
  UserObjects,
} from '../../src/protocol/shard-client.ts';
import { AppError, errorFromData } from '../../src/shared/app-error.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { LocalReplicaTransport } from '../../src/workers/pool/local-replica-transport.ts';
import type { ReplicationOptions } from '../../src/workers/pool/shard-replication.ts';
import type { WorkerPoolEvent } from '../../src/workers/pool/worker-pool-options.ts';
import { createWorkerPool } from '../../src/workers/pool/worker-pool.ts';
import type { WorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { EPOCH, MemoryShardSource } from './memory-shard-source.ts';

export const MODEL_VERSION = 1;

export type Fixture = {
  readonly pool: WorkerPool;
  readonly source: MemoryShardSource;
  readonly transports: InProcessTransport[];
  /** Lives of the replicas on this thread, where `replication.localReplicas` is set. */
  readonly nears: LocalReplicaTransport[];
  readonly events: WorkerPoolEvent[];
  readonly fatal: unknown[];
  /** Bounds that refused a request. */
  readonly refused: string[];
  [Symbol.asyncDispose](): Promise<void>;
};

export type FixtureOptions = {
  readonly workerCount?: number | undefined;
  readonly indexBytesMax?: number | undefined;
  readonly queueDepthMax?: number | undefined;
  readonly shardQueueDepthMax?: number | undefined;
  readonly pollMs?: number | undefined;
  readonly sliceMs?: number | undefined;
  readonly fsckRowsPerSecond?: number | undefined;
  readonly fsckIntervalMs?: number | undefined;
  readonly queueBytesMax?: number | undefined;
  readonly onStats?: ((stats: WorkerStats, slot: number) => void) | undefined;
  readonly modelJson?: string | undefined;
  readonly replication?: ReplicationOptions | undefined;
};

/** A started pool over workers in this process and a store in memory, with one model set. */
export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const source = new MemoryShardSource();
  const transports: InProcessTransport[] = [];
  const nears: LocalReplicaTransport[] = [];
  const localReplicas = options.replication?.localReplicas;
  const events: WorkerPoolEvent[] = [];
  const fatal: unknown[] = [];
  const refused: string[] = [];
  const settings = {
    ...WORKER_DEFAULTS,
    poolMax: 3,
    indexBytesMax: options.indexBytesMax ?? 256 * 1024 * 1024,
    pollMs: options.pollMs ?? 3_600_000,
    fsckRowsPerSecond: options.fsckRowsPerSecond ?? 0,
    fsckIntervalMs: options.fsckIntervalMs ?? WORKER_DEFAULTS.fsckIntervalMs,
    sliceMs: options.sliceMs ?? WORKER_DEFAULTS.sliceMs,
  };
  const pool = createWorkerPool({
    workerCount: options.workerCount ?? 2,
    createTransport: (slot) => {
      const transport = new InProcessTransport({ settings, source });
      transports[slot] = transport;
      return transport;
    },
    ...(localReplicas === undefined
      ? {}
      : {
          createLocalReplicas: (onOverload) => {
            const localReplicaSettings = {
              ...settings,
              indexBytesMax: localReplicas.indexBytesMax,
            };
            const made = new LocalReplicaTransport({
              settings: localReplicaSettings,
              clock: systemClock,
              source,
              onOverload,
            });
            nears.push(made);
            return made;
          },
        }),
    queueDepthMax: options.queueDepthMax ?? 1_000,
    shardQueueDepthMax: options.shardQueueDepthMax ?? 500,
    queueBytesMax: options.queueBytesMax ?? 1_000_000,
    replication: options.replication,
    onRefused: (bound) => refused.push(bound),
    onFatal: (cause) => fatal.push(cause),
    onStats: (slot, stats) => options.onStats?.(stats, slot),
    onEvent: (event) => events.push(event),
  });
  await pool.start();
  await pool.setModel('p', MODEL_VERSION, options.modelJson ?? '');
  return {
    pool,
    source,
    transports,
    nears,
    events,
    fatal,
    refused,
    [Symbol.asyncDispose]: () => pool.stop(),
  };
}

/** The scope of a read that may wait ten seconds. */
export function scopeOf(
  shard: ShardKey,
  minRevision: number,
  overrides: Partial<ReadScope> = {},
): ReadScope {
  return {
    ...shard,
    modelVersion: MODEL_VERSION,
    readBudget: 10_000,
    settingsVersion: 1,
    epoch: EPOCH,
    minRevision,
    forkId: '',
    isHeldOnly: false,
    deadlineMs: performance.timeOrigin + performance.now() + 10_000,
    ...overrides,
  };
}

/** `doc:<objectId>#viewer@user:<userId>` as a change. */
export function viewer(op: 'insert' | 'delete', objectId: string, userId: string): TupleChange {
  return {
    op,
    tuple: { namespace: 'doc', objectId, relation: 'viewer', subject: { kind: 'user', userId } },
  };
}

/** Check of `doc:<objectId>#viewer@user:<userId>`. */
export function checkViewer(
  pool: WorkerPool,
  scope: ReadScope,
  objectId: string,
  userId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const subject = { kind: 'user', userId } as const;
  const query = { namespace: 'doc', objectId, relation: 'viewer', subject, contextJson: '' };
  return askCheck(pool, scope, query, signal);
}

const NO_SCOPE = { projectId: '', tenantId: '', token: '' };

/** A raw request as the gateway sends it, when its scan read exactly what the body says. */
export function askRaw(
  pool: WorkerPool,
  scope: ReadScope,
  method: RawMethod,
  body: string | Uint8Array,
  expected = NO_SCOPE,
): Promise<RawAnswer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const format = typeof body === 'string' ? 'json' : 'proto';
  return new Promise((resolve) => {
    pool.raw(method, format, bytes, scope, expected, resolve);
  });
}

/** The answer to a request in JSON that names no scope. Errors: those of the pool; CANCELLED. */
function asked(
  pool: WorkerPool,
  scope: ReadScope,
  method: RawMethod,
  request: object,
  signal?: AbortSignal,
): Promise<Exclude<RawAnswer, { readonly kind: 'error' }>> {
  const body = Buffer.from(JSON.stringify(request));
  return new Promise((resolve, reject) => {
    const running = pool.raw(method, 'json', body, scope, NO_SCOPE, (answer) => {
      if (answer.kind === 'error') reject(errorFromData(answer.error));
      // The bytes are the pool's again once this returns.
      else if (answer.kind === 'body') resolve({ kind: 'body', body: Buffer.from(answer.body) });
      else resolve(answer);
    });
    signal?.addEventListener('abort', () => {
      running?.cancel();
      reject(new AppError('CANCELLED', 'the call was cancelled'));
    });
  });
}

/** What a Check answers. */
export async function askCheck(
  pool: WorkerPool,
  scope: ReadScope,
  { namespace, objectId, relation, subject, contextJson }: CheckQuery,
  signal?: AbortSignal,
): Promise<boolean> {
  const object = { namespace, objectId, relation };
  const { kind: _kind, ...set } = subject;
  const of = subject.kind === 'user' ? { subjectUserId: subject.userId } : { subjectSet: set };
  const context = contextJson === '' ? {} : { context: JSON.parse(contextJson) as unknown };
  const request = { ...object, ...of, ...context };
  return (await asked(pool, scope, 'check', request, signal)).kind === 'allowed';
}

export type BatchResult = { readonly allowed: boolean; readonly error: string };

/** What a BatchCheck answers. */
export async function askBatch(
  pool: WorkerPool,
  scope: ReadScope,
  items: readonly BatchItem[],
): Promise<readonly BatchResult[]> {
  const request = {
    items: items.map(({ userId: subjectUserId, ...item }) => ({ ...item, subjectUserId })),
  };
  const answer = jsonOf(await asked(pool, scope, 'batchCheck', request));
  return (answer as { readonly results: readonly BatchResult[] }).results;
}

/** What a ListObjects answers. */
export async function askList(
  pool: WorkerPool,
  scope: ReadScope,
  { userId: subjectUserId, ...query }: UserObjects,
): Promise<readonly string[]> {
  const answer = jsonOf(await asked(pool, scope, 'listObjects', { ...query, subjectUserId }));
  return (answer as { readonly object_ids: readonly string[] }).object_ids;
}

function jsonOf(answer: RawAnswer): unknown {
  if (answer.kind !== 'body') throw new Error('an answer without a body');
  return JSON.parse(Buffer.from(answer.body).toString());
}

/** The reason of an AppError, or the text of anything else. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && 'reason' in error ? String(error.reason) : String(error);
}
