import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import type { RunnerWiring } from '../../../src/runner/wiring/runner-wiring.ts';
import { AppError } from '../../../src/shared/app-error.ts';
import type { ActCase } from './act-cases.ts';
import { fileNamesOf } from './act-workspace.ts';

export type CaseOutcome = {
  readonly result: 'success' | 'failure';
  /** Errors of the files or of the runs, for a failure. */
  readonly details: readonly string[];
};

const POLL_MS = 25;
/** Who starts the runs in act's own tests. */
const ACTOR = 'nektos/act';
const FINE = new Set(['success', 'skipped']);

/** Runs every workflow of a case in the runner whose workspace is `makeActWorkspace`, and waits. */
export async function runCase(parts: RunnerWiring, one: ActCase): Promise<CaseOutcome> {
  const { workspace, runs, secrets } = parts;
  const read = (name: string): string => readFileSync(join(workspace, one.path, name), 'utf8');
  const { secretFile, eventFile } = one;
  if (secretFile !== undefined) await secrets.importEnv({ content: read(secretFile) });
  const payload = eventFile === undefined ? {} : (JSON.parse(read(eventFile)) as object);
  const isDispatch = one.event === 'workflow_dispatch';
  const details: string[] = [];
  for (const workflow of fileNamesOf(workspace, one)) {
    try {
      const { run } = await runs.start({
        workflow,
        event: one.event,
        actor: ACTOR,
        sandbox: { strategy: 'copy' },
        ...(isDispatch ? { inputs: one.inputs ?? inputsOf(payload) } : { payload }),
      });
      const ended = await endOf(parts, run.id);
      if (!FINE.has(ended.conclusion ?? '')) details.push(...(await explain(parts, ended)));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      details.push(`${error.reason}: ${error.message}`);
    }
  }
  return { result: details.length === 0 ? 'success' : 'failure', details };
}

function inputsOf(payload: object): Readonly<Record<string, string>> {
  const { inputs } = payload as { readonly inputs?: Readonly<Record<string, string>> };
  return inputs ?? {};
}

async function endOf({ runs }: RunnerWiring, id: string): Promise<WorkflowRun> {
  for (;;) {
    const run = runs.get(id);
    if (run?.completedAt !== undefined) return run;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function explain({ runs }: RunnerWiring, run: WorkflowRun): Promise<readonly string[]> {
  const errors = runs.annotations(run.id).filter(({ level }) => level === 'error');
  const failed = (await runs.getWithLogs(run.id)).jobs.flatMap((job) =>
    job.steps
      .filter(({ conclusion }) => conclusion === 'failure')
      .map((step) => `${job.id} step ${step.number} (${step.name}): ${step.log.slice(-300)}`),
  );
  return [
    `${run.fileName} ended in ${run.conclusion}`,
    ...errors.map(({ message }) => message),
    ...failed,
  ];
}
