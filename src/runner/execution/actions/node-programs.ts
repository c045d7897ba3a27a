import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { copyTree } from '../../host/tools/run-client.ts';
import type { ToolAtHand } from '../../host/tools/tool-source.ts';
import type { JobState } from '../state/job-state.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import type { StepLog } from '../state/step-log.ts';
import type { StepRun } from '../state/step-run.ts';

/**
 * The node for `using: node<N>`: up to 24 it is Node 24, as on GitHub. Where that is not here and cannot be
 * installed, the runner's own, if it is no older than what the action names, with a warning.
 * Errors: NOT_FOUND, CANCELLED.
 */
export async function nodeFor(
  job: JobState,
  using: string,
  { log, signal }: Pick<StepRun, 'log' | 'signal'>,
): Promise<string> {
  const wanted = Number(/^node(\d+)$/.exec(using)?.[1] ?? Number.NaN);
  if (Number.isNaN(wanted)) {
    throw new AppError('INVALID_WORKFLOW', `runs.using: '${using}' is no Node`, { field: 'using' });
  }
  const { tools } = job.dependencies;
  if (tools === undefined) return ownNode(wanted, using, 'it is set up without tools');
  try {
    let hasWaited = false;
    const tool = await tools.nodeForActions(wanted, signal, (text) => {
      hasWaited = true;
      log.say(text);
    });
    if (hasWaited) log.say(`Node ${tool.version} (${tool.source}), for ${using} of the action`);
    return await reachable(job, tool);
  } catch (error) {
    if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
    return ownNode(wanted, using, error.message, log);
  }
}

function ownNode(wanted: number, using: string, why: string, log?: StepLog): string {
  const { node } = process.versions;
  const own = Number(node.split('.', 1)[0]);
  if (own < wanted) throw new AppError('NOT_FOUND', `The action wants ${using}: ${why}`);
  log?.warn(`The action wants ${using} and runs on Node ${node}, the runner's own: ${why}`);
  return process.execPath;
}

/** A job of a fork sees no folder of the user. */
async function reachable(job: JobState, tool: ToolAtHand): Promise<string> {
  const isOfSystem = /^\/(?:usr|s?bin|opt|nix)\//.test(tool.program);
  if (job.request.isolation === undefined || isOfSystem || tool.program === process.execPath) {
    return tool.program;
  }
  const name = `node-for-actions-${tool.version}`;
  const dir = await layForJob(job, name, (making) => copyTree(tool.program, join(making, 'node')));
  return join(dir, 'node');
}
