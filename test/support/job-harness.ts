import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createArtifactStore } from '../../src/runner/execution/artifacts/artifact-store.ts';
import { createCacheStore } from '../../src/runner/execution/cache/cache-store.ts';
import { createJobExecutor } from '../../src/runner/execution/job-run.ts';
import type { ActionLibrary } from '../../src/runner/host/actions/action-library.ts';
import type { Supervision } from '../../src/runner/host/process/supervision.ts';
import type { ToolRegistry } from '../../src/runner/host/tools/tool-registry.ts';
import { readWorkflow } from '../../src/runner/language/read-workflow.ts';
import type {
  JobContexts,
  JobExecution,
  JobOutcome,
  JobReport,
  JobRequest,
} from '../../src/runner/model/execution.ts';
import type { ArtifactStore } from '../../src/runner/model/ports.ts';
import type { Annotation, Conclusion } from '../../src/runner/model/run.ts';
import type { JsonObject } from '../../src/shared/json.ts';

export type RecordedStep = {
  readonly number: number;
  name: string;
  isStarted: boolean;
  readonly lines: string[];
  conclusion?: Conclusion;
  outcome?: Conclusion;
  outputs?: Readonly<Record<string, string>>;
  summary: string;
};

/** What a job told, and how it ended. */
export type RecordedJob = {
  readonly outcome: JobOutcome;
  /** In the order known, by number. */
  readonly steps: readonly RecordedStep[];
  readonly annotations: readonly Annotation[];
  /** `start 1`, `end 1`… in order. */
  readonly events: readonly string[];
  /** The log of all steps. */
  readonly text: string;
  readonly projectDir: string;
  readonly jobDir: string;
  readonly artifacts: ArtifactStore;
};

export type JobOptions = {
  /** Files of the project by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly contexts?: Partial<JobContexts>;
  readonly request?: Partial<JobRequest>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ladder?: { readonly interruptMs: number; readonly terminateMs: number };
  readonly tools?: ToolRegistry;
  readonly actions?: ActionLibrary;
  readonly supervision?: Supervision;
  /** Called with each line of the log as it comes. */
  readonly onLine?: (line: string, execution: JobExecution) => void;
  readonly onLog?: (lines: readonly string[]) => Promise<void> | undefined;
  readonly projectDir?: string;
};

export function temporaryDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'job-')));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/**
 * A temporary HOME in which Go keeps no telemetry. Else `go` leaves a process behind that writes there while the folder is
 * removed (findings/go-version-leaves-a-process.sh).
 */
export function temporaryHome(): string {
  const home = temporaryDir();
  writeFiles(home, { '.config/go/telemetry/mode': 'off' });
  return home;
}

export function writeFiles(dir: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(dir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/**
 * Runs the first job of a workflow with the real executor, as the scheduler would: its workspace is the
 * project itself. `text` is a whole workflow, or the steps of one job.
 */
export async function runJob(text: string, options: JobOptions = {}): Promise<RecordedJob> {
  const projectDir = options.projectDir ?? temporaryDir();
  const jobDir = temporaryDir();
  writeFiles(projectDir, options.files ?? {});
  const runnerDir = join(projectDir, '.runner');
  const artifacts = await createArtifactStore(join(runnerDir, 'runs'));
  const executor = createJobExecutor({
    artifacts,
    cache: await createCacheStore(join(runnerDir, 'cache')),
    environment: { ...process.env, ...options.environment },
    killEscalation: options.ladder,
    tools: options.tools,
    actions: options.actions,
    supervision: options.supervision,
  });
  const recorder = createRecorder(options);
  const request = { ...(await requestOf(text, projectDir, jobDir, options)), ...options.request };
  const execution = executor.execute(request, recorder.report);
  recorder.attach(execution);
  const outcome = await execution.outcome;
  const { steps, annotations, events } = recorder;
  const lines = [...steps.values()].flatMap((step) => step.lines);
  return {
    outcome,
    steps: [...steps.values()],
    annotations,
    events,
    text: lines.join('\n'),
    projectDir,
    jobDir,
    artifacts,
  };
}

async function requestOf(
  text: string,
  projectDir: string,
  jobDir: string,
  options: JobOptions,
): Promise<JobRequest> {
  const isSteps = text.trimStart().startsWith('- ');
  const whole = isSteps
    ? `on: push\njobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n${indented(text)}`
    : text;
  const source = { text: whole, fileName: 'ci.yml', path: '.github/workflows/ci.yml' };
  const { workflow, problems } = await readWorkflow(source, () => Promise.resolve(undefined));
  if (workflow === undefined) throw new Error(`not a workflow: ${JSON.stringify(problems)}`);
  const [job] = workflow.jobs.values();
  if (job?.kind !== 'steps') throw new Error('the first job has no steps');
  const event: JsonObject = { action: 'test' };
  const github: JsonObject = { repository: 'owner/repo', sha: '0'.repeat(40), run_id: '1' };
  const contexts: JobContexts = {
    github,
    inputs: {},
    needs: {},
    strategy: {},
    matrix: null,
    vars: {},
    secrets: {},
    ...options.contexts,
  };
  return {
    runId: 'run1',
    runNumber: 1,
    attempt: 1,
    jobId: job.key,
    jobName: job.key,
    workflow,
    job,
    contexts,
    workflowContext: {},
    workspaceDir: projectDir,
    projectDir,
    jobDir,
    event,
    masks: [],
    timeoutMs: 300_000,
    logBytesMax: 16 * 1024 * 1024,
  };
}

function indented(text: string): string {
  const lines = text.replace(/^\n+/, '').split('\n');
  const margin = /^ */.exec(lines[0] ?? '')?.[0].length ?? 0;
  return lines.map((line) => `      ${line.slice(margin)}`).join('\n');
}

function createRecorder(options: JobOptions): {
  readonly report: JobReport;
  readonly steps: Map<number, RecordedStep>;
  readonly annotations: Annotation[];
  readonly events: string[];
  attach(execution: JobExecution): void;
} {
  const steps = new Map<number, RecordedStep>();
  const annotations: Annotation[] = [];
  const events: string[] = [];
  let running: JobExecution | undefined;
  const stepOf = (number: number): RecordedStep => {
    const step = steps.get(number);
    if (step === undefined) throw new Error(`step ${number} was not announced`);
    return step;
  };
  const report: JobReport = {
    stepsKnown(known) {
      for (const { number, name } of known) {
        if (steps.has(number)) continue;
        steps.set(number, { number, name, isStarted: false, lines: [], summary: '' });
      }
    },
    stepStarted(number, name) {
      events.push(`start ${number}`);
      Object.assign(stepOf(number), { name, isStarted: true });
    },
    log(number, lines) {
      stepOf(number).lines.push(...lines);
      if (running !== undefined) {
        for (const line of lines) options.onLine?.(line, running);
      }
      return options.onLog?.(lines);
    },
    stepCompleted(number, result) {
      events.push(`end ${number}`);
      if (stepOf(number).conclusion !== undefined) throw new Error(`step ${number} ended twice`);
      Object.assign(stepOf(number), result);
    },
    annotate: (annotation) => void annotations.push(annotation),
    summary: (number, markdown) => void (stepOf(number).summary = markdown),
  };
  return { report, steps, annotations, events, attach: (execution) => void (running = execution) };
}
