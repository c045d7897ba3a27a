import type { Cancellable, ReadScope } from '../../protocol/shard-client.ts';
import type { HeadRevisionWaiter } from '../../services/reads/head-revision-loads.ts';
import type { HeadRevision } from '../../services/reads/head-revisions.ts';
import { AppError } from '../../shared/app-error.ts';

/** A call that waits for its scope. One of these is called, once, unless it was cancelled. */
export interface ScopeWaiter {
  scopeFound(scope: ReadScope): void;
  /** The general path must take the call: it is to be refused, or something is unusual. */
  needsGeneralPath(): void;
  /** The database did not answer in time: STORE_UNAVAILABLE, DEADLINE_EXCEEDED, QUEUE_FULL, SHUTTING_DOWN. */
  scopeFailed(error: AppError): void;
}

/** Makes the scope of the read from a head and the version of the settings; undefined: it is unusual. */
type Finish = (
  headRevision: HeadRevision,
  settingsVersion: number | null,
  askedMs: number,
) => ReadScope | undefined | Promise<ReadScope | undefined>;

/** A read on the hot path while it waits for the head of its shard, and perhaps for newer settings. */
export class PendingRead implements HeadRevisionWaiter, Cancellable {
  readonly deadlineMs: number;
  /** Its entry in the read index; set before it can be called back. */
  waits: Cancellable | null = null;
  #call: ScopeWaiter | null;
  readonly #finish: Finish;

  constructor(call: ScopeWaiter, deadlineMs: number, finish: Finish) {
    this.#call = call;
    this.deadlineMs = deadlineMs;
    this.#finish = finish;
  }

  cancel(): void {
    this.#call = null;
    this.waits?.cancel();
  }

  found(headRevision: HeadRevision, settingsVersion: number | null, askedMs: number): void {
    const scope = this.#finish(headRevision, settingsVersion, askedMs);
    if (!(scope instanceof Promise)) return this.#finished(scope);
    scope.then(
      (newer) => this.#finished(newer),
      (error: unknown) => this.#settingsFailed(error),
    );
  }

  failed(error: AppError): void {
    const call = this.#call;
    this.#call = null;
    call?.scopeFailed(error);
  }

  #finished(scope: ReadScope | undefined): void {
    const call = this.#call;
    this.#call = null;
    if (scope === undefined) call?.needsGeneralPath();
    else call?.scopeFound(scope);
  }

  /** Fails the read where the general path would only wait again; otherwise the general path answers why. */
  #settingsFailed(error: unknown): void {
    if (error instanceof AppError && error.reason === 'STORE_UNAVAILABLE') this.failed(error);
    else this.#finished(undefined);
  }
}
