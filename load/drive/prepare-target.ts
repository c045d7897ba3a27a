import { LoadClient } from '../../bench/harness/client.ts';
import { createProject, fill } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { World } from '../../test/support/dataset/world.ts';
import type { LoadPlan } from './load-plan.ts';
import type { Target } from './messages.ts';

/** Why a run is refused before anything is asked: a sentence for whoever started it. */
export class TargetError extends Error {}

/** Whether a host is this machine by its loopback. */
function isLoopback(hostname: string): boolean {
  return /^(127(\.\d{1,3}){3}|\[::1\]|(.*\.)?localhost)$/.test(hostname);
}

/** Refuses a target that was not meant: no URL, or off the loopback without a yes. Errors: TargetError. */
export function assertTarget(target: Target, isAgreed: boolean): void {
  if (!URL.canParse(target.url)) throw new TargetError(`--target ${target.url} is no URL`);
  const url = new URL(target.url);
  if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') {
    throw new TargetError('--target must be an http or https URL without a name or password in it');
  }
  if (!isLoopback(url.hostname) && !isAgreed) {
    const why = 'Load tests disturb whoever uses it; add --yes if that is meant';
    throw new TargetError(`${url.host} is not this machine. ${why}`);
  }
}

const FILL_CONNECTIONS = 8;

/**
 * Makes the project of a plan where it is not there, and inserts its data set, which changes nothing where it is there
 * already. Errors: TargetError, with the service's words.
 */
export async function prepareTarget(
  target: Target,
  adminSecret: string | undefined,
  plan: LoadPlan,
): Promise<void> {
  if (plan.data === undefined) return;
  const { url: baseUrl, token } = target;
  const client = new LoadClient({ baseUrl, connections: FILL_CONNECTIONS, token });
  try {
    if (adminSecret !== undefined) {
      const made = createProject(client, adminSecret, plan.project, DATASET_MODEL_JSON);
      await made.catch((error: Error) => {
        if (!error.message.includes('already_exists')) throw error;
      });
    }
    const { tuples } = new World(plan.data.scale, plan.data.seed);
    await fill(client, tuples, { project_id: plan.project, tenant_id: plan.tenant });
  } catch (error) {
    throw new TargetError(`${plan.project} cannot be filled: ${(error as Error).message}`);
  } finally {
    await client.close();
  }
}
