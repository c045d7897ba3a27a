import { join } from 'node:path';
import { createLogger } from '../../observability/logger.ts';
import { AppError } from '../../shared/app-error.ts';
import type { LocalContext } from '../cli/local-runner.ts';
import type { RunReader, RunQuery } from '../cli/runner-link.ts';
import type { LogQuery } from '../model/ports.ts';
import type { WorkflowRun } from '../model/run.ts';
import { runLogText } from '../scheduler/run-log-text.ts';
import { replayRecords } from '../scheduler/run-recorder.ts';
import { runView } from '../scheduler/state/run-state.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import { openRunStore } from '../storage/run-store.ts';
import { reporterOf } from './wiring-basis.ts';

/**
 * The recorded runs of a workspace that no runner serves, as they lie on the disk: nothing is started
 * or recovered, so that looking changes nothing.
 * Errors: STORE_UNAVAILABLE when another process has the workspace.
 */
export async function openStoredRuns({
  workspace,
  logLevel,
}: Pick<LocalContext, 'workspace' | 'logLevel'>): Promise<RunReader> {
  const report = reporterOf(createLogger(logLevel));
  const stateDir = join(workspace, STATE_DIR);
  const store = await openRunStore({ stateDir, diskFloorBytes: 0, report });
  const recovered = await store.recover();
  const runs = recovered
    .map(({ records }) => replayRecords(records, (error) => report('runner.replay', error)))
    .flatMap((states) => (states === undefined ? [] : [runView(states.visible)]))
    .toReversed();
  return {
    list: (query) =>
      Promise.resolve(runs.filter((run) => isWanted(run, query)).slice(0, query.limit)),
    logs: (id, query) =>
      logsOf(
        runs.find((run) => run.id === id),
        id,
        query,
      ),
    close: () => store.close(),
  };

  async function* logsOf(
    run: WorkflowRun | undefined,
    id: string,
    query: LogQuery,
  ): AsyncGenerator<Uint8Array | string> {
    if (run === undefined) throw new AppError('RUN_NOT_FOUND', `No run with id ${id}`, { id });
    yield* runLogText(store, run, query);
  }
}

function isWanted(run: WorkflowRun, { status, workflow }: RunQuery): boolean {
  if (status !== undefined && run.status !== status) return false;
  const names = [run.workflow, run.fileName, run.fileName.replace(/\.ya?ml$/, '')];
  return workflow === undefined || names.includes(workflow);
}
