import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import { meant } from '../../../shared/text/nearest-name.ts';
import { mismatchOf, type FilteredEvent, type Mismatch } from '../../language/event-filters.ts';
import { EVENT_NAMES } from '../../language/event-schema.ts';
import type { ProjectHistory, StartRequest } from '../../model/ports.ts';
import type { SandboxFactory } from '../../model/storage.ts';
import type { Workflow, WorkflowTrigger } from '../../model/workflow.ts';
import {
  eventDocument,
  isPullRequestEvent,
  refOfEvent,
  type EventFacts,
} from './event-document.ts';
import { filteredEventOf } from './filtered-event.ts';
import { objectOf, textAt } from './payload.ts';

const DISPATCH_EVENT = 'workflow_dispatch';
const EVENT_CHARACTERS_SHOWN = 100;
/** Of the JSON of a payload: it goes into the journal of the run and the environment of its jobs. */
const PAYLOAD_CHARACTERS_MAX = 1024 * 1024;
/** One line, nothing that git or a shell reads as more than a name. */
const REF = /^refs\/[^\s~^:?*[\\\u007f]+$/;
const REF_CHARACTERS_MAX = 1_000;
/** Paths and patterns that a message shows of a list. */
const SHOWN_MAX = 5;
/** The activity that an event without payload has, where the workflow names none. */
const ACTIVITY: Readonly<Record<string, string>> = {
  check_run: 'completed',
  check_suite: 'completed',
  issue_comment: 'created',
  issues: 'opened',
  merge_group: 'checks_requested',
  pull_request: 'opened',
  pull_request_review: 'submitted',
  pull_request_review_comment: 'created',
  pull_request_target: 'opened',
  release: 'published',
  watch: 'started',
  workflow_run: 'completed',
};

/** The event of a start by hand, as its run is recorded with it. */
export type ManualEvent = {
  /** `github.ref`. */
  readonly ref: string;
  /** `github.event`. */
  readonly document: JsonObject;
  /** Why its triggers would not have started the workflow: it was forced. */
  readonly warnings: readonly string[];
};

/** What the project reports itself. */
export type EventSource = {
  readonly identity: EventFacts['identity'];
  readonly sandboxes: Pick<SandboxFactory, 'resolve'>;
  readonly history?: ProjectHistory | undefined;
};

type EventRevision = { readonly ref: string; readonly sha: string };

/**
 * The event name and payload of a start by hand, checked. Undefined payload: none was given.
 * Errors: INVALID_REQUEST that names the field.
 */
export function checkedEvent({ event = DISPATCH_EVENT, payload }: StartRequest): {
  readonly event: string;
  readonly payload: JsonObject | undefined;
} {
  if (!EVENT_NAMES.includes(event)) {
    const shown = event.slice(0, EVENT_CHARACTERS_SHOWN);
    const near = meant(shown.toLowerCase(), EVENT_NAMES);
    throw invalid('event', `'${shown}' is no event that GitHub has${near}`);
  }
  if (payload === undefined) return { event, payload: undefined };
  const object = objectOf(payload as JsonObject);
  if (object === undefined) throw invalid('payload', 'must be a JSON object');
  if (JSON.stringify(object).length > PAYLOAD_CHARACTERS_MAX) {
    throw invalid('payload', `must have at most ${PAYLOAD_CHARACTERS_MAX} characters`);
  }
  return { event, payload: object };
}

/**
 * Makes the event, and asks the triggers of the workflow whether it would have started it.
 * Errors: INVALID_REQUEST for a ref in the payload that is none; EVENT_NOT_MATCHED unless it is forced.
 */
export async function manualEvent(
  source: EventSource,
  workflow: Workflow,
  request: StartRequest,
  revision: EventRevision,
  actor: string,
): Promise<ManualEvent> {
  const { event, payload } = checkedEvent(request);
  const trigger = workflow.triggers.find((each) => each.event === event);
  const facts = await factsOf(source, event, trigger, revision, actor);
  const document = eventDocument(event, payload, facts);
  const ref = mustBeRef(refOfEvent(event, document)) ?? revision.ref;
  const filtered = await filteredOf(
    source,
    event,
    document,
    { ...request, payload },
    { trigger, revision, ref },
  );
  const problem = problemOf(workflow, event, trigger, filtered, document);
  if (problem === undefined) return { ref, document, warnings: [] };
  if (request.isForced === true)
    return { ref, document, warnings: [`${problem.message}; it was started all the same`] };
  throw new AppError('EVENT_NOT_MATCHED', problem.message, problem.metadata);
}

/** The ref that the payload of a dispatch names. Errors: INVALID_REQUEST. */
export function dispatchedRef(payload: JsonObject | undefined): string | undefined {
  return payload === undefined ? undefined : mustBeRef(refOfEvent(DISPATCH_EVENT, payload));
}

async function factsOf(
  { history, sandboxes, identity }: EventSource,
  event: string,
  trigger: WorkflowTrigger | undefined,
  { ref, sha }: EventRevision,
  actor: string,
): Promise<EventFacts> {
  const here = ref.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : 'main';
  const defaultBranch = (await history?.defaultBranch()) ?? here;
  const isPull = isPullRequestEvent(event);
  const base = isPull ? await baseOf(sandboxes, defaultBranch) : undefined;
  return {
    identity,
    actor,
    ref,
    sha,
    commit: event === 'push' ? await history?.commit(sha) : undefined,
    defaultBranch,
    baseSha: base ?? '',
    action: trigger?.types?.[0] ?? ACTIVITY[event],
    cron: trigger?.crons?.[0]?.cron ?? '',
  };
}

/** The commit of a branch of the project, its own or that of its remote. */
async function baseOf(
  sandboxes: EventSource['sandboxes'],
  branch: string,
): Promise<string | undefined> {
  for (const name of [`refs/heads/${branch}`, `refs/remotes/origin/${branch}`]) {
    try {
      return (await sandboxes.resolve(name, undefined)).sha;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
  }
  return undefined;
}

/** What the filters look at; git is asked for paths only where a filter asks for them. */
async function filteredOf(
  source: EventSource,
  event: string,
  document: JsonObject,
  request: StartRequest,
  {
    trigger,
    revision,
    ref,
  }: {
    readonly trigger: WorkflowTrigger | undefined;
    readonly revision: EventRevision;
    readonly ref: string;
  },
): Promise<FilteredEvent> {
  const said = filteredEventOf(event, document);
  const workflow = textAt(document, 'workflow', 'name') ?? textAt(document, 'workflow_run', 'name');
  const hasPaths = trigger?.paths !== undefined || trigger?.pathsIgnore !== undefined;
  const changedPaths =
    said.changedPaths ??
    (hasPaths ? await changedPathsOf(source, event, document, request, revision) : undefined);
  return { ...said, ref: event === 'push' ? ref : said.ref, workflow, changedPaths };
}

/** As GitHub compares: a push from its first commit to its last, a pull request from where it left its base. */
async function changedPathsOf(
  { history, sandboxes }: EventSource,
  event: string,
  document: JsonObject,
  { payload, sandbox }: StartRequest,
  { sha }: EventRevision,
): Promise<readonly string[] | undefined> {
  if (history === undefined) return undefined;
  if (isPullRequestEvent(event)) {
    const branch = textAt(document, 'pull_request', 'base', 'ref') ?? '';
    const base =
      textAt(document, 'pull_request', 'base', 'sha') ?? (await baseOf(sandboxes, branch));
    const head = textAt(document, 'pull_request', 'head', 'sha') ?? sha;
    return base === undefined ? undefined : history.changedPathsSince(base, head);
  }
  if (event !== 'push') return undefined;
  const after = textAt(document, 'after') ?? sha;
  const before = textAt(document, 'before') ?? '';
  const isNew = /^0*$/.test(before);
  // A new branch is compared with the commit before it.
  const start = isNew
    ? ((await history.commit(after))?.parents[0] ?? '0'.repeat(after.length))
    : before;
  const committed = await history.changedPaths(start, after);
  const isAsked = sandbox?.ref !== undefined || sandbox?.strategy === 'worktree';
  if (
    committed === undefined ||
    isAsked ||
    objectOf(payload as JsonObject)?.['after'] !== undefined
  ) {
    return committed;
  }
  // What runs is the working tree: what will be in the next commit counts as if it were.
  return [...committed, ...((await history.uncommittedPaths()) ?? [])];
}

type EventProblem = {
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
};

function problemOf(
  { fileName }: Workflow,
  event: string,
  trigger: WorkflowTrigger | undefined,
  filtered: FilteredEvent,
  document: JsonObject,
): EventProblem | undefined {
  if (trigger === undefined) {
    return { message: `${fileName} has no trigger ${event}`, metadata: { field: 'event', event } };
  }
  if (event === 'schedule') return cronProblem(fileName, trigger, textAt(document, 'schedule'));
  const mismatch = mismatchOf(trigger, filtered);
  if (mismatch === undefined) return undefined;
  const { filter } = mismatch;
  const message = `${fileName} does not start on this ${event}: ${mismatchText(mismatch)}`;
  return { message, metadata: { field: 'event', event, filter } };
}

function cronProblem(
  fileName: string,
  { crons = [] }: WorkflowTrigger,
  schedule: string | undefined,
): EventProblem | undefined {
  if (crons.some(({ cron }) => cron === schedule)) return undefined;
  const message = `${fileName} has no schedule '${schedule ?? ''}', but ${crons.map(({ cron }) => `'${cron}'`).join(', ')}`;
  return { message, metadata: { field: 'payload.schedule', event: 'schedule', filter: 'cron' } };
}

function mismatchText({ filter, seen, wanted }: Mismatch): string {
  const isEmpty = seen.every((text) => text === '');
  const looked = isEmpty ? `one without ${filter}` : listed(seen);
  return wanted.length === 0
    ? `its filters name no ${filter}, this is ${looked}`
    : `its filter ${filter} (${listed(wanted)}) leaves out ${looked}`;
}

function listed(texts: readonly string[]): string {
  const more = texts.length - SHOWN_MAX;
  return `${texts.slice(0, SHOWN_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Errors: INVALID_REQUEST for a text that git would not take for the name of a ref. */
function mustBeRef(ref: string | undefined): string | undefined {
  if (ref === undefined || ref === '') return undefined;
  const isFine =
    ref.length <= REF_CHARACTERS_MAX &&
    REF.test(ref) &&
    !/\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[/.]$/.test(ref);
  if (!isFine) throw invalid('payload', 'names a ref that is none');
  return ref;
}

function invalid(field: string, problem: string): AppError {
  return new AppError('INVALID_REQUEST', `${field}: ${problem}`, { field });
}
