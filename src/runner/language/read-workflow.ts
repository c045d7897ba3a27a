import type {
  CallJobDefinition,
  FileProblem,
  JobDefinition,
  Template,
  Workflow,
  WorkflowSource,
} from '../model/workflow.ts';
import { locateCalledWorkflow } from './called-workflow-path.ts';
import { checkCall } from './check-call.ts';
import { type PermissionsPolicy, checkPermissions } from './check-permissions.ts';
import { CALLED_FILES_MAX, CALL_DEPTH_MAX, JOBS_MAX } from './limits.ts';
import { ProblemList } from './problems.ts';
import { type PendingCall, readDefaults, readJob } from './read-jobs.ts';
import { checkNeeds } from './read-needs.ts';
import { readCall, readDispatchInputs, readTriggers } from './read-triggers.ts';
import { readBySchema } from './schema-reader.ts';
import {
  entriesOf,
  jsonFromTemplate,
  literalText,
  presentValueOf,
  valueOf,
} from './template-access.ts';
import { WORKFLOW_FILE } from './workflow-schema.ts';
import { type YamlLimits, type YamlNode, plainFromYaml, readYaml } from './yaml-tree.ts';

/**
 * Finds the file that a calling job names in `uses:`; `from` is the path of the caller, since `./` means
 * the caller's own repository. undefined when there is none.
 */
export type CalledFileLoader = (uses: string, from: string) => Promise<WorkflowSource | undefined>;

export type ReadLimits = YamlLimits & {
  /** Workflows below the outermost caller. */
  readonly callDepthMax?: number | undefined;
  /** Jobs of the whole, called ones included. */
  readonly jobsMax?: number | undefined;
  /** What a workflow may do that says nothing of permissions; everything when absent. */
  readonly permissionsPolicy?: PermissionsPolicy | undefined;
};

export type WorkflowReading = {
  readonly workflow?: Workflow | undefined;
  /** The plain document, absent when the text is no YAML. */
  readonly document?: unknown;
  readonly problems: readonly FileProblem[];
  /** Called workflows that are not there: the jobs that call them fail, the others run. */
  readonly missing?: readonly FileProblem[] | undefined;
};

/**
 * Reads a workflow and those it calls. There is a workflow exactly when there is no problem. Never
 * rejects but for what the loader throws. Problems of called files carry their path.
 */
export async function readWorkflow(
  source: WorkflowSource,
  load: CalledFileLoader,
  limits: ReadLimits = {},
): Promise<WorkflowReading> {
  const reader = new WorkflowReader(load, limits);
  const { tree, workflow, problems } = await reader.read(source);
  const whole = new ProblemList();
  if (workflow !== undefined && problems.length === 0) {
    checkPermissions(workflow, limits.permissionsPolicy, whole);
  }
  const all = [...problems, ...whole.all];
  return {
    workflow: all.length === 0 ? workflow : undefined,
    document: tree === undefined ? undefined : plainFromYaml(tree),
    problems: all,
    ...(reader.missing.length === 0
      ? {}
      : {
          missing: reader.missing.map(({ file, ...problem }) =>
            file === source.path ? problem : { ...problem, file },
          ),
        }),
  };
}

type FileResult = {
  readonly tree?: YamlNode | undefined;
  readonly workflow?: Workflow | undefined;
  /** Levels of called workflows below this one. */
  readonly height: number;
  /** Jobs of this one and of all that it calls. */
  readonly jobCount: number;
  readonly problems: readonly FileProblem[];
  readonly missing?: string | undefined;
};

class WorkflowReader {
  /** Called files that are not there. */
  readonly missing: FileProblem[] = [];
  readonly #load: CalledFileLoader;
  readonly #limits: ReadLimits;
  readonly #depthMax: number;
  /** Files that were read, or are being read (undefined), by path. */
  readonly #results = new Map<string, FileResult | undefined>();

  constructor(load: CalledFileLoader, limits: ReadLimits) {
    this.#load = load;
    this.#limits = limits;
    this.#depthMax = limits.callDepthMax ?? CALL_DEPTH_MAX;
  }

  async read(source: WorkflowSource): Promise<FileResult> {
    this.#results.set(source.path, undefined);
    const problems = new ProblemList();
    const tree = readYaml(source.text, problems, this.#limits);
    const template = tree === undefined ? undefined : readBySchema(tree, WORKFLOW_FILE, problems);
    let result: FileResult = { tree, height: 0, jobCount: 0, problems: problems.all };
    if (template !== undefined && problems.isEmpty) {
      result = { ...(await this.#convert(template, source, problems)), tree };
    }
    this.#results.set(source.path, result);
    return result;
  }

  async #convert(
    root: Template,
    source: WorkflowSource,
    problems: ProblemList,
  ): Promise<FileResult> {
    const on = valueOf(root, 'on');
    const name = literalText(valueOf(root, 'name'));
    const permissions = presentValueOf(root, 'permissions');
    const head = {
      name: name === '' ? undefined : name,
      fileName: source.fileName,
      path: source.path,
      runName: presentValueOf(root, 'run-name'),
      triggers: readTriggers(on, problems),
      dispatchInputs: readDispatchInputs(on, problems),
      call: readCall(on, problems),
      env: presentValueOf(root, 'env'),
      defaults: readDefaults(valueOf(root, 'defaults')),
      concurrency: presentValueOf(root, 'concurrency'),
      permissions: permissions === undefined ? undefined : jsonFromTemplate(permissions),
    };
    const jobsTemplate = valueOf(root, 'jobs');
    const pending = entriesOf(jobsTemplate).map((entry) => readJob(entry, problems));
    checkNeeds(
      entriesOf(jobsTemplate).map(({ name: key, value }) => ({
        key,
        needs: valueOf(value, 'needs'),
      })),
      jobsTemplate?.at ?? root.at,
      problems,
    );
    const jobs = new Map<string, JobDefinition>();
    let height = 0;
    let jobCount = 0;
    for (const job of pending) {
      if (job.kind === 'steps') {
        jobs.set(job.key, job);
        jobCount += 1;
        continue;
      }
      const called = await this.#called(job, source, problems);
      height = Math.max(height, (called?.height ?? 0) + 1);
      jobCount += 1 + (called?.jobCount ?? 0);
      if (called?.workflow !== undefined) {
        jobs.set(job.key, { ...callJobFrom(job, called.workflow), missing: called.missing });
      }
    }
    const jobsMax = this.#limits.jobsMax ?? JOBS_MAX;
    if (jobCount > jobsMax) {
      problems.add(
        jobsTemplate?.at ?? root.at,
        `The workflow may not contain more than ${jobsMax} jobs`,
      );
    }
    return { workflow: { ...head, jobs }, height, jobCount, problems: problems.all };
  }

  async #called(
    job: PendingCall,
    caller: WorkflowSource,
    problems: ProblemList,
  ): Promise<FileResult | undefined> {
    const report = (message: string): undefined => {
      problems.add(job.usesAt, message);
    };
    if (!isWorkflowReference(job.uses)) {
      return report(
        `Expected format {org}/{repo}/.github/workflows/{file}@ref or ./.github/workflows/{file}. Actual '${job.uses}'`,
      );
    }
    const source = await this.#load(job.uses, caller.path);
    if (source === undefined) {
      const isRemote = locateCalledWorkflow(job.uses, caller.path)?.isRemote === true;
      const how = isRemote ? ': `runner actions fetch` gets those of other repositories' : '';
      const missing = `Unable to find reusable workflow '${job.uses}'${how}`;
      this.missing.push({ ...job.usesAt, message: missing, file: caller.path });
      return { workflow: nothingOf(job.uses), height: 0, jobCount: 0, problems: [], missing };
    }
    if (!this.#results.has(source.path) && this.#results.size >= CALLED_FILES_MAX) {
      return report(`More than ${CALLED_FILES_MAX} workflow files are called`);
    }
    const isOpen = this.#results.has(source.path) && this.#results.get(source.path) === undefined;
    if (isOpen) {
      return report(`The workflow '${job.uses}' calls itself`);
    }
    const result = this.#results.get(source.path) ?? (await this.read(source));
    for (const { line, column, message, file } of result.problems) {
      problems.add({ line, column }, message, file ?? source.path);
    }
    if (result.height + 1 > this.#depthMax) {
      return report(`Nested reusable workflow depth exceeded ${this.#depthMax}.`);
    }
    const call = result.workflow?.call;
    if (result.workflow !== undefined && call === undefined) {
      return report(`The workflow '${job.uses}' has no workflow_call trigger`);
    }
    if (call !== undefined) {
      checkCall(job, call, problems);
    }
    return result;
  }
}

/** `./.github/workflows/x.yml`, `$/…` likewise, or `owner/repo/.github/workflows/x.yml@ref`. */
function isWorkflowReference(uses: string): boolean {
  return (
    /^(?:\.|\$)\/\.github\/workflows\/[^/@]+\.ya?ml$/.test(uses) ||
    /^[^/@\s]+\/[^/@\s]+\/\.github\/workflows\/[^/@]+\.ya?ml@\S+$/.test(uses)
  );
}

/** Stands for a workflow that is not there. */
function nothingOf(path: string): Workflow {
  return {
    fileName: path,
    path,
    triggers: [],
    dispatchInputs: new Map(),
    defaults: {},
    jobs: new Map(),
  };
}

function callJobFrom(job: PendingCall, called: Workflow): CallJobDefinition {
  const { usesAt: _usesAt, ...rest } = job;
  return { ...rest, kind: 'call', called };
}
