import type { NamespaceModel } from '../../model/namespace-model.ts';
import type { ScopeEntry } from '../../protocol/messages.ts';
import { AppError, errorToData } from '../../shared/app-error.ts';
import type { AnswerWriter } from '../jobs/answer-writer.ts';
import type { Job } from '../jobs/job.ts';
import { ModelRegistry } from './model-registry.ts';
import { ModelWaiters } from './model-waiters.ts';
import { unavailable, waitOver } from './shard-errors.ts';
import type { ShardReason } from './shard-reason.ts';

/** The models of one worker: those that it holds, and the jobs that wait for one which the gateway was asked for. */
export class HostModels {
  readonly #writer: AnswerWriter;
  readonly #accept: (job: Job) => void;
  readonly #models = new ModelRegistry();
  readonly #waiters: ModelWaiters;

  /** `accept` takes the jobs whose model has come. */
  constructor(writer: AnswerWriter, accept: (job: Job) => void) {
    this.#writer = writer;
    this.#accept = accept;
    this.#waiters = new ModelWaiters((projectId, version) =>
      writer.modelWanted(projectId, version),
    );
  }

  /** The model that a scope names; undefined: it is asked for, and `job` waits for it, if there is one. Hot. */
  find(
    { projectId, modelVersion }: Pick<ScopeEntry, 'projectId' | 'modelVersion'>,
    job: Job | null,
  ): NamespaceModel | undefined {
    const model = this.#models.get(projectId, modelVersion);
    if (model === undefined) this.#waiters.add(projectId, modelVersion, job);
    return model;
  }

  /** A model has come. `ackId` 0: nobody waits for the acknowledgement. */
  set(ackId: number, projectId: string, modelVersion: number, modelJson: string): void {
    try {
      this.#models.set(projectId, modelVersion, modelJson);
    } catch (error) {
      if (ackId !== 0) this.#writer.ack(ackId, errorToData(error));
      for (const job of this.#waiters.take(projectId, modelVersion)) {
        job.fail(new AppError<ShardReason>('INTERNAL', 'internal error', {}, error));
      }
      return;
    }
    if (ackId !== 0) this.#writer.ack(ackId);
    for (const job of this.#waiters.take(projectId, modelVersion)) this.#accept(job);
  }

  /** The gateway does not know the model. */
  unknown(projectId: string, modelVersion: number): void {
    for (const job of this.#waiters.take(projectId, modelVersion)) {
      job.fail(unavailable('the model of the project is not known yet'));
    }
  }

  /** Fails jobs whose time has ended; returns how many still wait. O(waiting). */
  sweep(nowMs: number): number {
    return this.#waiters.sweep(nowMs, (job) =>
      waitOver(job, nowMs, 'the model of the project did not arrive'),
    );
  }
}
