import type { JsonValue } from '../../shared/json.ts';

/** Where a thing stands in its file; both from 1. */
export type Position = { readonly line: number; readonly column: number };

/** A problem of a workflow or action file. The text names the key. */
export type FileProblem = Position & {
  readonly message: string;
  /** Set when the problem lies in another file than the one that was read. */
  readonly file?: string | undefined;
};

/**
 * A value of a workflow file that may hold `${{ }}`. It is parsed once, with its expressions, when the
 * file is read; evaluation/evaluate.ts turns it into JSON.
 */
export type Template =
  | {
      readonly kind: 'literal';
      readonly value: string | number | boolean | null;
      readonly at: Position;
    }
  | { readonly kind: 'expression'; readonly source: string; readonly at: Position }
  | { readonly kind: 'sequence'; readonly items: readonly Template[]; readonly at: Position }
  | { readonly kind: 'mapping'; readonly entries: readonly TemplateEntry[]; readonly at: Position };
export type TemplateEntry = { readonly key: Template; readonly value: Template };

/** An `if:`; `source` is the bare expression, without `${{ }}`, before `success() &&` is added. */
export type Condition = { readonly source: string; readonly at: Position };

export type InputType = 'string' | 'boolean' | 'number' | 'choice' | 'environment';
export type WorkflowInput = {
  readonly description?: string | undefined;
  readonly required?: boolean | undefined;
  /** As text, whatever its type in the file. */
  readonly default?: string | undefined;
  readonly type?: InputType | undefined;
  readonly options?: readonly string[] | undefined;
};

export type RunDefaults = {
  readonly shell?: Template | undefined;
  readonly workingDirectory?: Template | undefined;
};

/** One key of `on:` with its filters, patterns as written. */
export type WorkflowTrigger = {
  readonly event: string;
  readonly types?: readonly string[] | undefined;
  readonly branches?: readonly string[] | undefined;
  readonly branchesIgnore?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly tagsIgnore?: readonly string[] | undefined;
  readonly paths?: readonly string[] | undefined;
  readonly pathsIgnore?: readonly string[] | undefined;
  readonly workflows?: readonly string[] | undefined;
  readonly crons?:
    | readonly { readonly cron: string; readonly timezone?: string | undefined }[]
    | undefined;
};

export type WorkflowCall = {
  readonly inputs: ReadonlyMap<
    string,
    WorkflowInput & { readonly defaultTemplate?: Template | undefined }
  >;
  readonly secrets: ReadonlyMap<string, { readonly required: boolean }>;
  readonly outputs: ReadonlyMap<string, Template>;
};

/** A workflow file's text and where it came from. */
export type WorkflowSource = {
  readonly text: string;
  readonly fileName: string;
  /** Relative to the workspace, or `owner/repo/…@ref` for a remote one; unique within a reading. */
  readonly path: string;
};

/** A workflow file that was read without errors. Maps keep the order of the file. */
export type Workflow = {
  readonly name?: string | undefined;
  readonly fileName: string;
  /**
   * Relative to the workspace, with `/`: .github/workflows/ci.yml; of another repository:
   * owner/repo/.github/workflows/ci.yml@ref
   */
  readonly path: string;
  readonly runName?: Template | undefined;
  readonly triggers: readonly WorkflowTrigger[];
  readonly dispatchInputs: ReadonlyMap<string, WorkflowInput>;
  readonly call?: WorkflowCall | undefined;
  readonly env?: Template | undefined;
  readonly defaults: RunDefaults;
  readonly concurrency?: Template | undefined;
  /** As written; the local runner passes no token scopes on. */
  readonly permissions?: JsonValue | undefined;
  readonly jobs: ReadonlyMap<string, JobDefinition>;
};

type JobCommon = {
  readonly key: string;
  readonly at: Position;
  readonly name?: Template | undefined;
  readonly needs: readonly string[];
  readonly if?: Condition | undefined;
  readonly strategy?: StrategyDefinition | undefined;
  readonly concurrency?: Template | undefined;
  readonly permissions?: JsonValue | undefined;
};
export type StrategyDefinition = {
  readonly matrix?: Template | undefined;
  readonly failFast?: Template | undefined;
  readonly maxParallel?: Template | undefined;
};

export type StepsJobDefinition = JobCommon & {
  readonly kind: 'steps';
  readonly runsOn: Template;
  readonly env?: Template | undefined;
  readonly defaults: RunDefaults;
  readonly timeoutMinutes?: Template | undefined;
  readonly cancelTimeoutMinutes?: Template | undefined;
  readonly continueOnError?: Template | undefined;
  readonly environment?: Template | undefined;
  readonly container?: Template | undefined;
  readonly services?: Template | undefined;
  readonly outputs: ReadonlyMap<string, Template>;
  readonly steps: readonly StepDefinition[];
};

/** A job that calls a reusable workflow. */
export type CallJobDefinition = JobCommon & {
  readonly kind: 'call';
  readonly uses: string;
  readonly with?: Template | undefined;
  readonly secrets?: 'inherit' | Template | undefined;
  /** The called workflow, read with its caller; without jobs where it is missing. */
  readonly called: Workflow;
  /** Why there is no called workflow: the job fails, and those that need it do not run. */
  readonly missing?: string | undefined;
};

export type JobDefinition = StepsJobDefinition | CallJobDefinition;

type StepCommon = {
  readonly at: Position;
  readonly id?: string | undefined;
  readonly name?: Template | undefined;
  readonly if?: Condition | undefined;
  readonly env?: Template | undefined;
  readonly continueOnError?: Template | undefined;
  readonly timeoutMinutes?: Template | undefined;
};
export type RunStepDefinition = StepCommon & {
  readonly kind: 'run';
  readonly run: Template;
  readonly shell?: Template | undefined;
  readonly workingDirectory?: Template | undefined;
  /** Goes on beside the following steps until it is waited for (parallel steps, 2026). */
  readonly background: boolean;
};
export type UsesStepDefinition = StepCommon & {
  readonly kind: 'uses';
  readonly uses: string;
  readonly with?: Template | undefined;
  readonly background: boolean;
};
/** `wait: id | [ids]`, `wait-all:` (ids absent), `cancel: id`. */
export type WaitStepDefinition = StepCommon & {
  readonly kind: 'wait';
  readonly ids?: readonly string[] | undefined;
};
export type CancelStepDefinition = StepCommon & {
  readonly kind: 'cancel';
  readonly target: string;
};
export type ParallelStepDefinition = StepCommon & {
  readonly kind: 'parallel';
  readonly steps: readonly (RunStepDefinition | UsesStepDefinition)[];
};
export type StepDefinition =
  | RunStepDefinition
  | UsesStepDefinition
  | WaitStepDefinition
  | CancelStepDefinition
  | ParallelStepDefinition;

/** An action.yml that was read without errors. */
export type ActionDefinition = {
  readonly name: string;
  readonly inputs: ReadonlyMap<
    string,
    {
      readonly required: boolean;
      readonly default?: Template | undefined;
      readonly deprecationMessage?: string | undefined;
    }
  >;
  /** Composite actions only: their outputs' values. */
  readonly outputs: ReadonlyMap<string, Template | undefined>;
  readonly runs:
    | { readonly kind: 'composite'; readonly steps: readonly StepDefinition[] }
    | {
        readonly kind: 'javascript';
        /** Such as `node20`. */
        readonly using: string;
        readonly main: string;
        readonly pre?: string | undefined;
        readonly preIf?: Condition | undefined;
        readonly post?: string | undefined;
        readonly postIf?: Condition | undefined;
      }
    | {
        readonly kind: 'docker';
        readonly image: string;
        readonly args?: Template | undefined;
        readonly entrypoint?: string | undefined;
        readonly env?: Template | undefined;
      };
};
