import { AppError } from '../../shared/app-error.ts';
import { matchesTrigger, type FilteredEvent } from '../language/event-filters.ts';
import type { RunService, StartRequest, WorkflowCatalog } from '../model/ports.ts';
import type { JsonObject, JsonValue } from '../model/run.ts';
import type { ErrorReason } from '../model/runner-reason.ts';
import type { WorkflowTrigger } from '../model/workflow.ts';

/** Why a workflow that an event selects was not started. */
export type StartProblem = {
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
const PASSING: ReadonlySet<string> = new Set<ErrorReason>([
  'QUEUE_FULL',
  'DISK_FULL',
  'SHUTTING_DOWN',
]);
const DISPATCH_EVENT = 'workflow_dispatch';
const ZERO_SHA = /^0+$/;

/** Starts the workflows whose triggers an event of the code host matches (GitHub, "Events that trigger workflows"). */
export class InboxEvents {
  readonly #catalog: WorkflowCatalog;
  readonly #runs: RunService;

  constructor(catalog: WorkflowCatalog, runs: RunService) {
    this.#catalog = catalog;
    this.#runs = runs;
  }

  /**
   * One run for each workflow with a trigger that matches. What keeps one of them from starting is a
   * problem of the answer.
   * Errors: QUEUE_FULL, DISK_FULL and SHUTTING_DOWN as long as no run was started.
   */
  async start(event: string, payload: JsonObject): Promise<EventRuns> {
    const runs: string[] = [];
    const problems: StartProblem[] = [];
    if (isDeletion(event, payload)) return { runs, problems };
    const filtered = filteredEventOf(event, payload);
    for (const { fileName, workflow } of await this.#catalog.list()) {
      const triggers = workflow?.triggers.filter((trigger) => trigger.event === event) ?? [];
      const isMatched = triggers.some(
        (trigger) => matchesTrigger(trigger, filtered) && isAfter(trigger, payload),
      );
      if (!isMatched) continue;
      if (event === DISPATCH_EVENT && !isDispatched(fileName, payload)) continue;
      try {
        runs.push(await this.#startOne(fileName, event, payload));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        if (runs.length === 0 && PASSING.has(error.reason)) throw error;
        const { reason, message } = error;
        problems.push({ workflow: fileName, code: reason.toLowerCase(), message });
      }
    }
    return { runs, problems };
  }

  /** At the branch or commit of the event if the project has it, else at its HEAD. */
  async #startOne(workflow: string, event: string, payload: JsonObject): Promise<string> {
    const request: StartRequest = {
      workflow,
      event,
      payload,
      actor: textAt(payload, 'sender', 'login'),
      inputs: event === DISPATCH_EVENT ? inputsOf(payload['inputs']) : undefined,
    };
    for (const ref of refsOf(event, payload)) {
      try {
        const { run } = await this.#runs.start({ ...request, sandbox: { ref } });
        return run.id;
      } catch (error) {
        if (!(error instanceof AppError) || error.reason !== 'INVALID_REF') throw error;
      }
    }
    const { run } = await this.#runs.start(request);
    return run.id;
  }
}

/** Does the trigger name the workflow that a `workflow_run` tells of? Other events name none. */
function isAfter({ workflows }: WorkflowTrigger, payload: JsonObject): boolean {
  if (workflows === undefined) return true;
  const name = textAt(payload, 'workflow', 'name') ?? textAt(payload, 'workflow_run', 'name');
  return name !== undefined && workflows.includes(name);
}

/** What the filters of `on:` look at. */
function filteredEventOf(event: string, payload: JsonObject): FilteredEvent {
  const action = textAt(payload, 'action');
  const base = textAt(payload, 'pull_request', 'base', 'ref');
  if (base !== undefined) return { ref: `refs/heads/${base}`, action };
  const tag = textAt(payload, 'release', 'tag_name');
  if (tag !== undefined) return { ref: `refs/tags/${tag}`, action };
  const branch = textAt(payload, 'workflow_run', 'head_branch');
  if (branch !== undefined) return { ref: `refs/heads/${branch}`, action };
  const ref = textAt(payload, 'ref') ?? textAt(payload, 'repository', 'default_branch') ?? '';
  const changedPaths = event === 'push' ? changedPathsOf(payload['commits']) : undefined;
  return { ref, action, changedPaths };
}

/** Paths that the commits of a push name; undefined when it lists none. */
function changedPathsOf(commits: JsonValue | undefined): readonly string[] | undefined {
  if (!Array.isArray(commits) || commits.length === 0) return undefined;
  const paths = new Set<string>();
  for (const commit of commits as readonly JsonValue[]) {
    for (const kind of ['added', 'modified', 'removed']) {
      const list = objectOf(commit)?.[kind];
      if (!Array.isArray(list)) continue;
      for (const path of list as readonly JsonValue[])
        if (typeof path === 'string') paths.add(path);
    }
  }
  return [...paths];
}

/** Where the run should be, best first. */
function refsOf(event: string, payload: JsonObject): readonly string[] {
  const isPullRequest = event.startsWith('pull_request');
  const refs = isPullRequest
    ? [textAt(payload, 'pull_request', 'head', 'sha')]
    : [
        textAt(payload, 'ref'),
        textAt(payload, 'after'),
        textAt(payload, 'release', 'tag_name'),
        textAt(payload, 'workflow_run', 'head_sha'),
      ];
  return refs.filter(
    (ref): ref is string => ref !== undefined && ref !== '' && !ZERO_SHA.test(ref),
  );
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

function inputsOf(value: JsonValue | undefined): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(objectOf(value) ?? {}).map(([name, given]): [string, string] => [
    name,
    typeof given === 'object' ? JSON.stringify(given) : String(given),
  ]);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

/** The text at a path of names, undefined when there is none. */
function textAt(payload: JsonObject, ...path: readonly string[]): string | undefined {
  let value: JsonValue | undefined = payload;
  for (const name of path) value = objectOf(value)?.[name];
  return typeof value === 'string' ? value : undefined;
}
