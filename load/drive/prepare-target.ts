import { LoadClient } from '../../bench/harness/client.ts';
import { createProject, fill } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type LoadPlan, OWN_PROJECT, writesOf } from './load-plan.ts';
import type { Target } from './messages.ts';
import { isLoopback } from './transport.ts';

/** Why a run is refused before anything is asked: a sentence for whoever started it. */
export class TargetError extends Error {}

/**
 * Refuses a target that was not meant: off the loopback without a yes, and any plan that would write to a project
 * which is not one of load tests. Errors: TargetError.
 */
export function assertTarget(target: Target, plan: LoadPlan | undefined, isAgreed: boolean): void {
  let url: URL;
  try {
    url = new URL(target.url);
  } catch {
    throw new TargetError(`--target ${target.url} is no URL`);
  }
  if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') {
    throw new TargetError('--target must be an http or https URL without a name or password in it');
  }
  if (!isLoopback(url.hostname) && !isAgreed) {
    throw new TargetError(
      `${url.host} is not this machine. Load tests disturb whoever uses it; add --yes if that is meant`,
    );
  }
  if (plan !== undefined && writesOf(plan) && !OWN_PROJECT.test(plan.project)) {
    throw new TargetError(`writes go to projects named load-… alone, not to ${plan.project}`);
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
  const client = new LoadClient({
    baseUrl: target.url,
    connections: FILL_CONNECTIONS,
    token: target.token,
  });
  try {
    if (adminSecret !== undefined) {
      await createProject(client, adminSecret, plan.project, DATASET_MODEL_JSON).catch(
        (error: Error) => {
          if (!error.message.includes('already_exists')) throw error;
        },
      );
    }
    const { tuples } = new World(plan.data.scale, plan.data.seed);
    await fill(client, tuples, { project_id: plan.project, tenant_id: plan.tenant });
  } catch (error) {
    throw new TargetError(`${plan.project} cannot be filled: ${(error as Error).message}`);
  } finally {
    await client.close();
  }
}
