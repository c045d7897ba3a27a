import type { ShardKey } from '../../model/relation-tuple.ts';
import type { AnswerBatch, ControlMessage, RequestBatch } from '../../protocol/messages.ts';
import type { RawScope, ReadScope, WireFormat } from '../../protocol/shard-client.ts';
import { assert } from '../../shared/assert.ts';
import type { ChangePage } from '../../store/feed/changes.ts';
import { PackingShardIndex } from '../indexes/packing-index.ts';
import { type InstantAnswer, InstantChecks } from '../jobs/instant-checks.ts';
import type { ShardSource } from '../shard/ports.ts';
import type { ShardActor } from '../shard/shard-actor.ts';
import type { ShardHostOptions } from './shard-host-options.ts';
import { ShardHost } from './shard-host.ts';

/** Usersets of one evaluation; what else it may take is bounded by InstantChecks. */
const NODES_MAX = 64;
/** Bound of the caches of one index. */
const CACHE_BYTES_MAX = 8 * 1024 * 1024;
/** Longer bodies are parsed by workers. */
const BODY_BYTES_MAX = 4_096;
/** A change of more bytes, some 150 tuples, is not applied on this thread, and so much in one turn. */
const CHANGE_BYTES_MAX = 16 * 1024;
const TURN_BYTES_MAX = 32 * 1024;
/** A slice of a load, and what others get after it. */
const SLICE_MS = 0.5;
const PAUSE_MS = 4;
const FSCK_SLICE_MS = 0.25;
/** Shortest time between two reads of the store's head revision. */
const REFRESH_AGAIN_MS = 5;

export type LocalReplicaAnswer = InstantAnswer;
export type LocalReplicaOptions = Pick<
  ShardHostOptions,
  'settings' | 'clock' | 'source' | 'post'
> & {
  /** The replicas cannot be trusted any more. */
  readonly onFailed: (error: unknown) => void;
  /** A shard changes by more at once than this thread may apply: it must be released. */
  readonly onOverload: (shard: ShardKey) => void;
};

/** A Check with its format and scope. */
export type LocalReplicaCheck = {
  readonly format: WireFormat;
  readonly body: Uint8Array;
  readonly scope: ReadScope;
  readonly expected: RawScope;
};

/**
 * A worker's host on the gateway's thread, for replicas of busy shards. It follows changes as every host
 * does. It answers single Checks alone, within the call, if no wait and little work is needed. Nothing here
 * takes long: loads run in slices, and large changes are not applied. A shard that lags behind for that is
 * released.
 */
export class LocalReplica {
  readonly #host: ShardHost;
  readonly #checks: InstantChecks;
  readonly #options: LocalReplicaOptions;
  #refreshAtMs = 0;

  constructor(options: LocalReplicaOptions) {
    this.#options = options;
    const { settings, clock, source, post, onFailed } = options;
    this.#host = new ShardHost({
      settings,
      clock,
      source: this.#bounded(source),
      createIndex: (shared, user) => new PackingShardIndex(shared, user),
      post,
      engine: {
        depthMax: Math.min(settings.depthMax, NODES_MAX),
        membershipBytesMax: Math.min(CACHE_BYTES_MAX, settings.indexBytesMax / 4),
      },
      pace: { sliceMs: SLICE_MS, fsckSliceMs: FSCK_SLICE_MS, ready: () => sleep(PAUSE_MS) },
      onFailed,
      // It evaluates nothing of which a memory must outlive it.
      underEvaluation: new Float64Array(1),
    });
    this.#checks = new InstantChecks(this.#host.jobs);
    this.#host.start();
  }

  /** The host, for tests. */
  get host(): ShardHost {
    return this.#host;
  }

  stop(): void {
    this.#host.stop();
  }

  /** Handles the control messages for the replicas; requests never come here. */
  handle(batch: RequestBatch): AnswerBatch {
    assert(batch.raw.length === 0 && batch.requests.length === 0, 'no request waits for this host');
    const budget = { bytes: TURN_BYTES_MAX };
    const control = batch.control.flatMap((message) => this.#bearable(message, budget));
    return this.#host.handle({ ...batch, control });
  }

  /** The answer, if it can be given at once. Errors: those of damaged replicas. Hot. */
  check({ format, body, scope, expected }: LocalReplicaCheck): LocalReplicaAnswer {
    if (body.length > BODY_BYTES_MAX) return 'left';
    const actor = this.#actorFor(scope);
    if (actor === undefined) return 'left';
    const model = this.#host.modelOf(scope);
    if (model === undefined) return 'left';
    return this.#checks.answer(actor.index, model, format, body, scope, expected);
  }

  /** The actor whose index may answer for a scope now. Hot. */
  #actorFor(scope: ReadScope): ShardActor | undefined {
    const actor = this.#host.actor(scope);
    if (actor === undefined || !actor.isLoaded) return undefined;
    const verdict = actor.judge({ scope, minRevision: scope.minRevision });
    if (verdict === 'serve') return actor;
    if (verdict === 'wait' || verdict === 'diverged') this.#refresh(scope);
    return undefined;
  }

  /** Makes a replica that is behind, or of another history, read the head revision from the store. */
  #refresh(shard: ShardKey): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#refreshAtMs) return;
    this.#refreshAtMs = nowMs + REFRESH_AGAIN_MS;
    this.#host.actor(shard)?.changes.hint(0);
  }

  /**
   * The part of a message that is passed on within the budget of a turn. The rest is caught up with when a read
   * requires it.
   */
  #bearable(message: ControlMessage, left: { bytes: number }): readonly ControlMessage[] {
    switch (message.kind) {
      case 'committed': {
        const { change } = message;
        const bytes = change.changes.length;
        if (bytes > CHANGE_BYTES_MAX) this.#options.onOverload(change);
        return this.#mayApply(change, bytes, left) ? [message] : [];
      }
      case 'carried': {
        const { carried } = message;
        const bytes = carried.changes.reduce((sum, { changes }) => sum + changes.length, 0);
        if (this.#mayApply(carried, bytes, left)) return [message];
        // The history that it names counts in any case.
        return [{ kind: 'carried', carried: { ...carried, changes: [] } }];
      }
      case 'hint':
        // Each read names the revision that it requires, and most changes are carried with the poll for it.
        return message.shard === null ? [message] : [];
      default:
        return [message];
    }
  }

  #mayApply(shard: ShardKey, bytes: number, left: { bytes: number }): boolean {
    // While it loads or catches up changes would gather, to be applied in one go.
    const isReady = this.#host.actor(shard)?.state === 'ready';
    if (!isReady || bytes > CHANGE_BYTES_MAX || bytes > left.bytes) return false;
    left.bytes -= bytes;
    return true;
  }

  /** `source` without changes that take long to apply. */
  #bounded(source: ShardSource): ShardSource {
    const { onOverload } = this.#options;
    return {
      ...(source.loadSlots === undefined ? {} : { loadSlots: source.loadSlots }),
      loadSnapshot: (...args) => source.loadSnapshot(...args),
      readPage: (...args) => source.readPage(...args),
      readHeadRevisions: (shards) => source.readHeadRevisions(shards),
      readChanges: async (shard, afterRevision) => {
        const page = await source.readChanges(shard, afterRevision);
        return withoutLarge(page, () => onOverload(shard));
      },
    };
  }
}

/** The changes before the first that is too large, as if there had been no more: the replica stays behind. */
function withoutLarge(page: ChangePage, onLarge: () => void): ChangePage {
  const { changes } = page;
  const at = changes.findIndex((change) => change.changes.length > CHANGE_BYTES_MAX);
  if (at < 0) return page;
  onLarge();
  if (at === 0) throw new Error('a change is larger than this thread may apply');
  return { ...page, changes: changes.slice(0, at) };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
