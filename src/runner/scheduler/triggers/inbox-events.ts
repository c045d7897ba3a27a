import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import { matchesTrigger } from '../../language/event-filters.ts';
import type { ForkIsolation } from '../../model/isolation.ts';
import type { RunService, StartRequest, WorkflowCatalog } from '../../model/ports.ts';
import type { RunnerErrorReason } from '../../model/reasons.ts';
import type { CommitFetcher, EventCommit, SandboxFactory } from '../../model/storage.ts';
import type { ApprovedAuthors } from './approved-authors.ts';
import { authorOf, subjectOf, type EventSubject } from './event-subject.ts';
import { filteredEventOf, isAfter } from './filtered-event.ts';
import { findCommit } from './find-commit.ts';
import { inputTexts, textAt } from './payload.ts';

/** RUNNER_FORK_APPROVAL: which runs of forks wait for somebody to approve them. */
type ForkApproval = 'always' | 'first-time' | 'refuse';

/** Accounts that the host knows to have had something taken into the repository, or to belong to it. */
const KNOWN_ASSOCIATIONS: ReadonlySet<string> = new Set([
  'OWNER',
  'MEMBER',
  'COLLABORATOR',
  'CONTRIBUTOR',
]);

/**
 * Whether a run of a fork waits for approval. `first-time`: not when the host says that the author has
 * contributed before or belongs to the repository, nor when a run of theirs was approved here.
 */
function needsApproval(
  approval: ForkApproval,
  payload: JsonObject,
  wasApproved: (authorId: string) => boolean,
): boolean {
  if (approval !== 'first-time') return true;
  const author = authorOf(payload);
  if (author === undefined) return true;
  return !KNOWN_ASSOCIATIONS.has(author.association) && !wasApproved(author.id);
}

/** Why a workflow that an event selects was not started. */
export type StartProblem = {
  /** '' when it kept all of them from starting. */
  readonly workflow: string;
  readonly code: string;
  readonly message: string;
};

/** What an event led to. */
export type EventRuns = {
  readonly runs: readonly string[];
  readonly problems: readonly StartProblem[];
};

/** Reasons for which the sender of a webhook should try again later. */
const PASSING: ReadonlySet<string> = new Set<RunnerErrorReason>([
  'QUEUE_FULL',
  'DISK_FULL',
  'SHUTTING_DOWN',
]);
const DISPATCH_EVENT = 'workflow_dispatch';

export type InboxOptions = {
  /** Of the project as it is. */
  readonly catalog: WorkflowCatalog;
  /** Of the workflow files in another folder. */
  readonly catalogOf: (dir: string) => WorkflowCatalog;
  readonly runs: RunService;
  readonly sandboxes: Pick<SandboxFactory, 'openCommits'>;
  readonly fetcher: CommitFetcher;
  readonly forkApproval: ForkApproval;
  readonly authors: Pick<ApprovedAuthors, 'has'>;
  readonly isolation: Pick<ForkIsolation, 'whyNot'>;
};

/** What the runs of one event have in common. */
type EventStart = Pick<
  StartRequest,
  'event' | 'payload' | 'isSelected' | 'actor' | 'inputs' | 'fork'
>;

/**
 * Starts the workflows whose triggers an event of the code host matches (GitHub, "Events that trigger
 * workflows"). An event of a commit runs that commit, with the workflow files that it has.
 */
export class InboxEvents {
  readonly #options: InboxOptions;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /**
   * One run for each workflow with a trigger that matches. What keeps one of them from starting, or all,
   * is a problem of the answer.
   * Errors: QUEUE_FULL, DISK_FULL and SHUTTING_DOWN as long as no run was started.
   */
  async start(event: string, payload: JsonObject): Promise<EventRuns> {
    if (isDeletion(event, payload)) return { runs: [], problems: [] };
    try {
      const subject = subjectOf(event, payload);
      if (subject.kind === 'project') {
        return await this.#startAll(this.#options.catalog, startOf(event, payload), undefined);
      }
      return await this.#startAtCommit(subject, event, payload);
    } catch (error) {
      if (!(error instanceof AppError) || PASSING.has(error.reason)) throw error;
      return { runs: [], problems: [problemOf('', error)] };
    }
  }

  /** Errors: those of findCommit, FORKS_REFUSED. */
  async #startAtCommit(
    subject: Exclude<EventSubject, { readonly kind: 'project' }>,
    event: string,
    payload: JsonObject,
  ): Promise<EventRuns> {
    const isFork = subject.kind === 'merge' && subject.isFork;
    if (isFork) await this.#mustTakeForks();
    const repository = await this.#options.sandboxes.openCommits();
    try {
      const found = await findCommit(subject, repository, this.#options.fetcher);
      const catalog = this.#options.catalogOf(await repository.workflowsOf(found.sha));
      const fork = isFork ? this.#forkOf(payload) : undefined;
      const start = { ...startOf(event, payload), fork };
      return await this.#startAll(catalog, start, { ...found, repository });
    } finally {
      await repository.close();
    }
  }

  async #mustTakeForks(): Promise<void> {
    if (this.#options.forkApproval === 'refuse') {
      throw new AppError(
        'FORKS_REFUSED',
        'pull requests of forks are refused (RUNNER_FORK_APPROVAL)',
      );
    }
    const why = await this.#options.isolation.whyNot();
    if (why !== undefined) {
      throw new AppError('FORKS_REFUSED', `jobs of forks cannot be kept apart here: ${why}`);
    }
  }

  #forkOf(payload: JsonObject): StartRequest['fork'] {
    const { forkApproval, authors } = this.#options;
    return {
      needsApproval: needsApproval(forkApproval, payload, (id) => authors.has(id)),
      authorId: authorOf(payload)?.id,
    };
  }

  async #startAll(
    catalog: WorkflowCatalog,
    start: EventStart & { readonly event: string; readonly payload: JsonObject },
    commit: EventCommit | undefined,
  ): Promise<EventRuns> {
    const { event, payload } = start;
    const runs: string[] = [];
    const problems: StartProblem[] = [];
    const filtered = filteredEventOf(event, payload);
    for (const file of await catalog.list()) {
      const { fileName, workflow } = file;
      const triggers = workflow?.triggers.filter((trigger) => trigger.event === event) ?? [];
      const isMatched = triggers.some(
        (trigger) => matchesTrigger(trigger, filtered) && isAfter(trigger, payload),
      );
      if (!isMatched) continue;
      if (event === DISPATCH_EVENT && !isDispatched(fileName, payload)) continue;
      try {
        const at = commit === undefined ? undefined : { commit, file };
        const { run } = await this.#options.runs.start({ ...start, workflow: fileName, at });
        runs.push(run.id);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        if (runs.length === 0 && PASSING.has(error.reason)) throw error;
        problems.push(problemOf(fileName, error));
      }
    }
    return { runs, problems };
  }
}

function startOf(
  event: string,
  payload: JsonObject,
): EventStart & { readonly event: string; readonly payload: JsonObject } {
  return {
    event,
    payload,
    isSelected: true,
    actor: textAt(payload, 'sender', 'login'),
    inputs: event === DISPATCH_EVENT ? inputTexts(payload['inputs']) : undefined,
  };
}

function problemOf(workflow: string, { reason, message }: AppError): StartProblem {
  return { workflow, code: reason.toLowerCase(), message };
}

/** A branch or tag that was deleted by a push starts nothing. */
function isDeletion(event: string, payload: JsonObject): boolean {
  return event === 'push' && payload['deleted'] === true;
}

/** A dispatch names its one workflow by path; without a name all that can be dispatched are meant. */
function isDispatched(fileName: string, payload: JsonObject): boolean {
  const path = textAt(payload, 'workflow');
  return path === undefined || path === fileName || path.endsWith(`/${fileName}`);
}
