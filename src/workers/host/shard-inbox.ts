import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { RequestBatch, ScopeEntry, WorkerRequest } from '../../protocol/messages.ts';
import { RAW_FIELDS } from '../../protocol/messages.ts';
import { errorToData } from '../../shared/app-error.ts';
import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import type { BatchBodies } from '../jobs/batch-bodies.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { ReadJob } from '../jobs/job.ts';
import { queryJob } from '../query-jobs/query-job.ts';
import { rawJob } from '../query-jobs/raw-job.ts';
import type { ShardActor } from '../shard/shard-actor.ts';
import type { HostModels } from './host-models.ts';
import type { ShardActors } from './shard-actors.ts';

export type ShardInboxOptions = {
  readonly context: JobContext;
  readonly models: HostModels;
  readonly actors: ShardActors;
};

/** Makes jobs of the requests of a message, and gives each to the actor of its shard once its model is there. */
export class ShardInbox {
  readonly #options: ShardInboxOptions;
  /** Scope of the message being accepted. */
  #lastScope: ScopeEntry | null = null;
  #lastActor: ShardActor | null = null;
  #lastModel: NamespaceModel | null = null;

  constructor(options: ShardInboxOptions) {
    this.#options = options;
  }

  /** All requests of a message. `waitUntilMs`: how long one without a nearer deadline waits for its shard. */
  acceptAll(batch: RequestBatch, bodies: BatchBodies, waitUntilMs: number): void {
    const { context } = this.#options;
    const { raw } = batch;
    for (let field = 0; field < raw.length; field += RAW_FIELDS) {
      this.accept(rawJob(context, batch, bodies, field, waitUntilMs));
    }
    for (const request of batch.requests) this.#acceptParsed(batch, request, waitUntilMs);
    this.#lastScope = null;
    this.#lastActor = null;
  }

  /** One job. Hot. */
  accept(job: ReadJob): void {
    const { scope } = job;
    // Requests of one shard come in runs, which share their scope object within a message.
    if (scope === this.#lastScope && this.#lastActor !== null) {
      if (DEBUG_ASSERTIONS) {
        const { projectId, tenantId } = this.#lastActor.key;
        const isItsShard = projectId === scope.projectId && tenantId === scope.tenantId;
        assert(isItsShard, 'a scope goes to the actor of its shard');
      }
      job.model = this.#lastModel;
      this.#lastActor.submit(job);
      return;
    }
    const model = this.#options.models.modelFor(scope, job);
    if (model === undefined) return;
    const actor = this.#options.actors.of(scope);
    this.#lastScope = scope;
    this.#lastActor = actor;
    this.#lastModel = model;
    job.model = model;
    actor.submit(job);
  }

  #acceptParsed(batch: RequestBatch, request: WorkerRequest, waitUntilMs: number): void {
    const { context } = this.#options;
    const scope = batch.scopes[request.scope];
    if (scope === undefined) {
      context.writer.error(request.requestId, errorToData(new Error('a request without scope')));
      return;
    }
    this.accept(queryJob(context, request, scope, waitUntilMs));
  }
}
