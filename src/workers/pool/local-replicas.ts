import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ReadScope } from '../../protocol/shard-client.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { BatchStages } from '../../shared/time/stage-times.ts';
import type { LocalReplicaAnswer, LocalReplicaCheck } from '../host/local-replica.ts';
import { labelOfRaw } from '../queues/pending-request.ts';
import type { SlotLimits } from '../queues/queue-bound.ts';
import { type SlotReports, WorkerSlot } from '../slot/worker-slot.ts';
import type { LocalReplicaTransport } from './local-replica-transport.ts';
import type { PoolAdmission } from './pool-admission.ts';
import type { RefusedRequests } from './refused-requests.ts';
import type { ReplicatedShard } from './replicated-shard.ts';

/** Shards with a replica on the gateway's thread, and what became of their single Checks since the start. */
export type LocalReplicaFigures = {
  readonly shards: number;
  /** Bytes of their indexes and of the caches beside them. */
  readonly indexBytes: number;
  readonly answered: number;
  /** To workers. */
  readonly left: number;
};

export type LocalReplicasOptions = {
  /** Behind the slots of the workers. */
  readonly slotIndex: number;
  readonly createLocalReplicas: (onOverload: (shard: ShardKey) => void) => LocalReplicaTransport;
  readonly onOverload: (shard: ShardKey) => void;
  readonly limits: SlotLimits;
  readonly reports: SlotReports;
  readonly clock: Clock;
  readonly stages: BatchStages | undefined;
  readonly shardQueueDepthMax: number;
  readonly refused: RefusedRequests;
  readonly admission: PoolAdmission;
};

/** A longer model is not parsed for the replicas on this thread, on which it would take milliseconds. */
const MODEL_LENGTH_MAX = 128 * 1024;
/** The replicas of shards on this thread: their slot, and the single Checks that they answer in the call. */
export class LocalReplicas {
  readonly slot: WorkerSlot;
  /** Bytes of their indexes, as the slot reports them. */
  indexBytes = 0;
  readonly #options: LocalReplicasOptions;
  #transport: LocalReplicaTransport | null = null;
  #answered = 0;
  #left = 0;

  constructor(options: LocalReplicasOptions) {
    this.#options = options;
    const { createLocalReplicas, onOverload, slotIndex, limits, reports, clock } = options;
    const createTransport = (): LocalReplicaTransport => {
      this.#transport = createLocalReplicas(onOverload);
      return this.#transport;
    };
    const modelJson = (projectId: string, version: number): string | undefined => {
      const json = reports.modelJson(projectId, version);
      return json !== undefined && json.length > MODEL_LENGTH_MAX ? undefined : json;
    };
    this.slot = new WorkerSlot(
      slotIndex,
      createTransport,
      limits,
      { ...reports, modelJson },
      clock,
    );
  }

  /** Outcomes of the Checks that they were asked, and the count of `shards`. */
  figures(shards: number): LocalReplicaFigures {
    const { indexBytes } = this;
    return { shards, indexBytes, answered: this.#answered, left: this.#left };
  }

  /** The answer to what a worker would take and no worker has died of; what is left to a worker is counted. Hot. */
  check(replicated: ReplicatedShard, opcode: number, check: LocalReplicaCheck): LocalReplicaAnswer {
    const { stages } = this.#options;
    const sinceMs = stages === undefined ? 0 : performance.now();
    const answer = this.#answer(replicated, opcode, check);
    stages?.tried(sinceMs);
    if (answer === 'allowed' || answer === 'denied') {
      replicated.answered += 1;
      this.#answered += 1;
    } else this.#left += 1;
    return answer;
  }

  /** Whether its worker would take one more request now. */
  #isOpen({ owner }: ReplicatedShard, scope: ReadScope): boolean {
    const { admission, shardQueueDepthMax } = this.#options;
    if (admission.isDraining || owner.pendingCount >= shardQueueDepthMax) return false;
    return scope.deadlineMs > performance.timeOrigin + performance.now();
  }

  #answer(
    replicated: ReplicatedShard,
    opcode: number,
    check: LocalReplicaCheck,
  ): LocalReplicaAnswer {
    const { owner } = replicated;
    const { scope, body } = check;
    const { refused } = this.#options;
    if (!this.#isOpen(replicated, scope)) return 'left';
    if (refused.size > 0 && refused.isRefused(() => labelOfRaw(owner, opcode), body)) return 'left';
    const raised = replicated.raised(scope);
    if (raised === null) return 'left';
    const raisedCheck = raised === scope ? check : { ...check, scope: raised };
    return this.#transport?.check(raisedCheck) ?? 'left';
  }
}
