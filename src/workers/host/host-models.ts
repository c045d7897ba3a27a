import { LRUCache } from 'lru-cache';
import { admittedOnly } from '../../model/namespace/model-references.ts';
import { type NamespaceModel, parseModel } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ScopeEntry } from '../../protocol/messages.ts';
import { modelKey } from '../../protocol/model-store.ts';
import { AppError, errorToData } from '../../shared/app-error.ts';
import type { AnswerWriter } from '../jobs/answer-writer.ts';
import type { ReadJob } from '../jobs/job.ts';
import { unavailable, waitOver } from '../shard/shard-errors.ts';

const NO_JOBS: readonly ReadJob[] = [];

/** Jobs that wait for a requested model, by project and version. */
export class ModelWaiters {
  readonly #jobs = new Map<string, ReadJob[]>();
  readonly #request: (projectId: string, modelVersion: number) => void;

  /** `request` is called for the first job that waits. */
  constructor(request: (projectId: string, modelVersion: number) => void) {
    this.#request = request;
  }

  /** `job` waits for the model; null: the model is requested, and no job waits. */
  add(projectId: string, modelVersion: number, job: ReadJob | null): void {
    const key = modelKey(projectId, modelVersion);
    let waiting = this.#jobs.get(key);
    if (waiting === undefined) {
      waiting = [];
      this.#jobs.set(key, waiting);
      this.#request(projectId, modelVersion);
    }
    if (job !== null) waiting.push(job);
  }

  /** The model has come, or is not known: who waited for it. */
  remove(projectId: string, modelVersion: number): readonly ReadJob[] {
    const key = modelKey(projectId, modelVersion);
    const jobs = this.#jobs.get(key) ?? NO_JOBS;
    this.#jobs.delete(key);
    return jobs;
  }

  /** Fails those whose time has ended; returns how many still wait. O(waiting). */
  sweep(nowMs: number, error: (job: ReadJob) => AppError): number {
    let open = 0;
    for (const [key, jobs] of this.#jobs) {
      const kept = jobs.filter((job) => !job.isCancelled && job.waitUntilMs > nowMs);
      for (const job of jobs) {
        if (!job.isCancelled && job.waitUntilMs <= nowMs) job.fail(error(job));
      }
      if (kept.length === 0) this.#jobs.delete(key);
      else this.#jobs.set(key, kept);
      open += kept.length;
    }
    return open;
  }
}

/** Bytes of a parsed model for each character of its text, and those besides: 4 to 8 were measured of the models of docs/patterns. */
const BYTES_PER_CHARACTER = 8;
const ENTRY_BYTES = 512;
/** Space for the longest document of a model, whatever a worker has for its indexes. */
const BYTES_MIN = 1024 * 1024;
/** Parsed models take at most this share of the bytes of a worker's indexes. */
const INDEX_SHARE = 1 / 8;

/**
 * Models that one worker holds, by project and version: an LRU cache bounded by bytes; a missing model is requested. A
 * negative version is that of a document (`documentVersion`), which counts admitted tuples only. All projects
 * without a document share one object.
 */
export class ModelRegistry {
  readonly #models: LRUCache<string, NamespaceModel>;
  readonly #builtIn = parseModel('');

  /** `indexBytesMax`: bytes that the worker has for its indexes, of which these are a share. */
  constructor(indexBytesMax: number) {
    this.#models = new LRUCache({
      maxSize: Math.max(BYTES_MIN, Math.floor(indexBytesMax * INDEX_SHARE)),
    });
  }

  /** About what the models take. */
  get bytes(): number {
    return this.#models.calculatedSize;
  }

  /** Errors: MODEL_INVALID. Cost: O(document). */
  set(projectId: string, modelVersion: number, modelJson: string): void {
    const parsed = modelJson === '' ? this.#builtIn : parseModel(modelJson);
    const model = modelVersion < 0 ? admittedOnly(parsed) : parsed;
    const size = ENTRY_BYTES + modelJson.length * BYTES_PER_CHARACTER;
    this.#models.set(modelKey(projectId, modelVersion), model, { size });
  }

  get(projectId: string, modelVersion: number): NamespaceModel | undefined {
    return this.#models.get(modelKey(projectId, modelVersion));
  }
}

/** Models of one worker: those that it holds, and the jobs that wait for one requested from the gateway. */
export class HostModels {
  readonly #writer: AnswerWriter;
  readonly #accept: (job: ReadJob) => void;
  readonly #models: ModelRegistry;
  readonly #waiters: ModelWaiters;

  /** `accept` takes the jobs whose model has come; `indexBytesMax`: as of ModelRegistry. */
  constructor(writer: AnswerWriter, indexBytesMax: number, accept: (job: ReadJob) => void) {
    this.#models = new ModelRegistry(indexBytesMax);
    this.#writer = writer;
    this.#accept = accept;
    this.#waiters = new ModelWaiters((projectId, version) =>
      writer.modelWanted(projectId, version),
    );
  }

  /** About what the models take. */
  get bytes(): number {
    return this.#models.bytes;
  }

  /** The model that a scope names; undefined: it is requested, and `job`, if any, waits for it. Hot. */
  modelFor(
    { projectId, modelVersion }: Pick<ScopeEntry, 'projectId' | 'modelVersion'>,
    job: ReadJob | null,
  ): NamespaceModel | undefined {
    const model = this.#models.get(projectId, modelVersion);
    if (model === undefined) this.#waiters.add(projectId, modelVersion, job);
    return model;
  }

  /** Installs a model that has come. `ackId` 0: no acknowledgement is awaited. */
  install(ackId: number, projectId: string, modelVersion: number, modelJson: string): void {
    try {
      this.#models.set(projectId, modelVersion, modelJson);
    } catch (error) {
      if (ackId !== 0) this.#writer.ack(ackId, errorToData(error));
      for (const job of this.#waiters.remove(projectId, modelVersion)) {
        job.fail(new AppError<AuthzReason>('INTERNAL', 'internal error', {}, error));
      }
      return;
    }
    if (ackId !== 0) this.#writer.ack(ackId);
    for (const job of this.#waiters.remove(projectId, modelVersion)) this.#accept(job);
  }

  /** The gateway does not know the model. */
  unknown(projectId: string, modelVersion: number): void {
    for (const job of this.#waiters.remove(projectId, modelVersion)) {
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
