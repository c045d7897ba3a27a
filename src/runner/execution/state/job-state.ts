import type { JsonObject, JsonValue } from '../../../shared/json.ts';
import type { ActionLibrary, FoundAction } from '../../host/actions/action-library.ts';
import type { StepVariables } from '../../host/process/step-environment.ts';
import type { Supervision, Supervisor } from '../../host/process/supervision.ts';
import type { ToolRegistry } from '../../host/tools/tool-registry.ts';
import type {
  CancelKind,
  JobReport,
  JobRequest,
  ExpressionScope,
  StatusView,
} from '../../model/execution.ts';
import type { ArtifactStore, ProblemReporter } from '../../model/ports.ts';
import type { AnnotationLevel } from '../../model/run.ts';
import type { ActionDefinition, RunDefaults } from '../../model/workflow.ts';
import type { RepositoryPlace } from '../../step-output/annotation-places.ts';
import type { Masker } from '../../step-output/masker.ts';
import { createMatcherSet } from '../../step-output/matcher-set.ts';
import type { CacheStore } from '../cache/cache-store.ts';
import type { BackgroundSteps } from './background-steps.ts';
import { hashFilesApart } from './hash-apart.ts';
import type { JobEnvironment } from './job-environment.ts';
import { ANNOTATION_CHARACTERS_MAX } from './limits.ts';
import { ProgramFinder } from './program-finder.ts';
import { runnerVariables } from './runner-context.ts';
import { LogBudget } from './step-log.ts';
import type { StageDefinition, StepPlan } from './step-plan.ts';
import type { StepRun } from './step-run.ts';

/** Folders of one job, absolute. */
export type JobFolders = {
  readonly workspace: string;
  readonly project: string;
  /** RUNNER_TEMP. */
  readonly temp: string;
  readonly scripts: string;
  /** GITHUB_ENV and its like. */
  readonly commands: string;
};

/** A step that waits until the steps of the job are done. */
export type PostStep = {
  readonly name: string;
  /** Of the step that left it; they share STATE_*. */
  readonly key: string;
  readonly frame: StepFrame;
  readonly definition: StageDefinition;
};

export type RunSteps = (
  frame: StepFrame,
  steps: readonly StepPlan[],
  parent?: StepRun,
) => Promise<void>;

/** Everything that is one for a job, whatever step or action asks. */
export class JobState {
  readonly request: JobRequest;
  readonly report: JobReport;
  readonly dependencies: ExecutorDependencies;
  /** Runs steps of a frame: what composite actions need of their own user. */
  readonly runSteps: RunSteps;
  readonly masker: Masker;
  readonly folders: JobFolders;
  readonly trackingId: string;
  readonly finder = new ProgramFinder();
  readonly matchers = createMatcherSet();
  readonly repository: RepositoryPlace;
  readonly isDebug: boolean;
  readonly budget: LogBudget;
  /** The `runner` context. */
  readonly runner: Readonly<Record<string, string>>;
  /** The same as RUNNER_* variables. */
  readonly runnerVariables: Readonly<Record<string, string>>;
  /** What every process of the job gets, below `env`. */
  readonly baseVariables: Readonly<Record<string, string>>;
  /** Parts of them that no log may show. */
  readonly hidden: readonly string[];
  /** Step runs that are going on, of the job and of composite actions. */
  readonly running = new Set<StepRun>();
  /** The last one runs first. */
  readonly posts: PostStep[] = [];
  /** STATE_* by the step that they belong to: its frame's path and its key. */
  readonly states = new Map<string, Map<string, string>>();
  /** Where actions of other repositories are. */
  readonly actions: ActionLibrary;
  /** Those that were looked for already, by `owner/repo@ref`. */
  readonly foundActions = new Map<string, Promise<FoundAction | undefined>>();
  /** Remote actions that were read already. */
  readonly loadedActions = new Map<string, LoadedAction>();
  /** Tools that are the job's own, by name; see job-tool-folders.ts. */
  readonly laidTools = new Map<string, Promise<string>>();
  /** Real paths of the folders that steps may keep command files in, that of the files first. Set once they are made. */
  realFolders: readonly string[] = [];
  /** The parent of the job's processes; undefined where there is none. */
  supervisor: Supervisor | undefined;
  /** The docker program, if it works; undefined before somebody asked. */
  docker: Promise<string | undefined> | undefined;
  cancelKind: CancelKind | undefined;
  /** A timeout makes the run fail, even if the job is killed later. */
  hasTimedOut = false;
  outputBytes = 0;
  /** Whether the workspace may hold something else than it began with. */
  isTouched = false;

  constructor(parts: {
    readonly request: JobRequest;
    readonly report: JobReport;
    readonly dependencies: ExecutorDependencies;
    readonly runSteps: RunSteps;
    readonly masker: Masker;
    readonly folders: JobFolders;
    readonly trackingId: string;
    readonly isDebug: boolean;
    readonly runner: Readonly<Record<string, string>>;
    readonly baseVariables: Readonly<Record<string, string>>;
    readonly actions: ActionLibrary;
    readonly hidden: readonly string[];
  }) {
    this.request = parts.request;
    this.report = parts.report;
    this.dependencies = parts.dependencies;
    this.runSteps = parts.runSteps;
    this.masker = parts.masker;
    this.folders = parts.folders;
    this.trackingId = parts.trackingId;
    this.runner = parts.runner;
    this.runnerVariables = runnerVariables(parts.runner);
    this.baseVariables = parts.baseVariables;
    this.actions = parts.actions;
    this.hidden = parts.hidden;
    this.isDebug = parts.isDebug;
    const { github } = parts.request.contexts;
    const { repository, server_url: serverUrl } = github;
    this.repository = {
      workspaceDir: parts.folders.workspace,
      name: typeof repository === 'string' ? repository : undefined,
      serverUrl: typeof serverUrl === 'string' ? serverUrl : undefined,
      isApart: parts.request.isolation !== undefined,
    };
    this.budget = new LogBudget(parts.request.logBytesMax);
  }

  get jobId(): string {
    return this.request.jobId;
  }

  get isCancelled(): boolean {
    return this.cancelKind !== undefined;
  }

  /** An annotation of the job itself, or one of a step that has ended. */
  annotate(level: AnnotationLevel, message: string, stepNumber?: number): void {
    this.report.annotate({
      level,
      message: this.masker.mask(message).slice(0, ANNOTATION_CHARACTERS_MAX),
      jobId: this.request.jobId,
      ...(stepNumber === undefined ? {} : { stepNumber }),
    });
  }
}

/**
 * A list of steps and what they see: the job itself, or one use of a composite action. What a frame's
 * steps do to each other (`steps`, `hasFailure`) stays within it.
 */
export type StepFrame = {
  readonly job: JobState;
  /** 0 for the job, 1 for a composite action that it uses… */
  readonly depth: number;
  /** '' for the job, then the keys of the steps that use the actions, with a `/` behind each. */
  readonly path: string;
  /** What `$/` means. */
  readonly repositoryRoot: string;
  readonly environment: JobEnvironment;
  /** `env` of the steps that use this action: goes before the environment. */
  readonly overrides: Readonly<Record<string, string>>;
  /** The `github` context, with what is the action's own. */
  readonly github: JsonObject;
  /** Contexts beside github, env, steps, job and runner. */
  readonly contexts: Readonly<Record<string, JsonValue | undefined>>;
  readonly defaults: readonly RunDefaults[];
  /** INPUT_* for run steps. */
  readonly inputVariables: Readonly<Record<string, string>>;
  /** The `steps` context. Another object after each step: what was read of one is kept. */
  steps: JsonObject;
  /** Names for GITHUB_ACTION that are taken. */
  readonly actionNames: Map<string, number>;
  readonly background: BackgroundSteps;
  hasFailure: boolean;
};

/** What status functions answer within a frame. */
export function statusOf(frame: StepFrame): StatusView {
  return { isCancelled: frame.job.isCancelled, hasFailure: frame.hasFailure };
}

/** What expressions of a frame's steps see. `env` is the step's. */
export function scopeOf(
  frame: StepFrame,
  env: Readonly<Record<string, string>>,
  github: JsonObject = frame.github,
): ExpressionScope {
  const { job } = frame;
  return {
    contexts: {
      ...frame.contexts,
      github,
      env,
      steps: frame.steps,
      job: {
        ...job.request.workflowContext,
        status: jobStatus(frame),
        services: {},
        container: {},
      },
      runner: job.runner,
    },
    status: statusOf(frame),
    hashRoot: job.folders.workspace,
    ...hashingOf(job),
  };
}

function hashingOf({ request: { isolation } }: JobState): Pick<ExpressionScope, 'hashFiles'> {
  if (isolation === undefined) return {};
  const never = new AbortController().signal;
  return {
    hashFiles: (args, signal) => hashFilesApart(isolation, args, signal ?? never),
  };
}

function jobStatus(frame: StepFrame): string {
  if (frame.job.isCancelled) return 'cancelled';
  return frame.hasFailure ? 'failure' : 'success';
}

/** `env` as a frame's steps start with: the job's, then that of the steps which use the action. */
export function frameEnv(frame: StepFrame): Readonly<Record<string, string>> {
  if (frame.depth === 0) return frame.environment.values;
  return { ...frame.environment.values, ...frame.overrides };
}

/** What the execution of jobs is wired with. */
export type ExecutorDependencies = {
  readonly artifacts: ArtifactStore;
  readonly cache: CacheStore;
  /** The environment of the runner; only its harmless part reaches a step. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Actions of other repositories. Default: those in `.runner/actions` of the job's project. */
  readonly actions?: ActionLibrary | undefined;
  /** What jobs ask for by the setup actions, and the Node of JavaScript actions. Without it only the runner's own node is there. */
  readonly tools?: ToolRegistry | undefined;
  /** What steps get of it beside the usual; default: nothing more. */
  readonly stepVariables?: StepVariables | undefined;
  /** Gives each job a parent of all its processes. Without it what a job leaves is found by its environment. */
  readonly supervision?: Supervision | undefined;
  /** Notified of errors that are the runner's own. */
  readonly onProblem?: ProblemReporter | undefined;
  /** Waiting times of the kill escalation, for those who cannot wait 10 s. */
  readonly killEscalation?:
    | { readonly interruptMs: number; readonly terminateMs: number }
    | undefined;
};

/** An action whose files are on this host. */
export type LoadedAction = {
  /** Absolute. */
  readonly dir: string;
  readonly definition: ActionDefinition;
  readonly isLocal: boolean;
  /** Of remote actions: GITHUB_ACTION_REPOSITORY and GITHUB_ACTION_REF. */
  readonly repository: string;
  readonly ref: string;
  /** The root of the repository that it lies in: what `$/` means within it. */
  readonly root: string;
};

/** Leaves a stage to the end of the job, unless the step `key` of the frame left one already. */
export function addPostStep(
  frame: StepFrame,
  key: string,
  post: { readonly name: string; readonly definition: StageDefinition },
): void {
  const { posts } = frame.job;
  const stateKey = frame.path + key;
  if (posts.some((other) => other.key === stateKey)) return;
  posts.push({ ...post, frame, key: stateKey });
}
