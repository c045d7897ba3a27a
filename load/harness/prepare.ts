import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import type { Service } from '../../bench/harness/service.ts';
import {
  ALLOWED,
  CHECK_PATH,
  checkBodies,
  createProject,
  fill,
} from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import type { Question } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import type { Issue } from './arrivals.ts';
import type { LoadOptions, StartService } from './scenario.ts';

export type Prepared = {
  readonly service: Service;
  /** With as many connections as were asked for: for filling, closed loops and neighbours. */
  readonly client: LoadClient;
  /** For constant rates: opens connections as it needs them, so that nothing waits for one. */
  readonly open: LoadClient;
  readonly world: World;
  readonly scope: Record<string, string>;
  readonly fillPerSecond: number;
};

const OPEN_CONNECTIONS_MAX = 1024;

/** A client for constant rates. */
export function openClient(service: Service): LoadClient {
  const { baseUrl, token } = service;
  return new LoadClient({ baseUrl, connections: OPEN_CONNECTIONS_MAX, token });
}

/** A running service that holds the data set in the project `load`. */
export async function prepare(
  options: LoadOptions,
  start: StartService,
  env?: Readonly<Record<string, string>>,
): Promise<Prepared> {
  const service = await start(env);
  const client = new LoadClient({
    baseUrl: service.baseUrl,
    connections: options.connections,
    token: service.token,
  });
  const open = openClient(service);
  const world = new World(options.scale, options.seed);
  await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
  const scope = { project_id: 'load', tenant_id: 't1' };
  const startedMs = performance.now();
  await fill(client, world.tuples, scope);
  const fillPerSecond = world.tuples.length / ((performance.now() - startedMs) / 1000);
  return { service, client, open, world, scope, fillPerSecond };
}

/** Issues Check requests in turn and compares every answer. */
export function checkIssue(
  client: LoadClient,
  questions: readonly Question[],
  scope: Record<string, string>,
): Issue {
  const bodies = checkBodies(questions, scope);
  return (index, done) => {
    const i = index % bodies.length;
    client.post(CHECK_PATH, bodies[i] as Buffer, (reply, error) => {
      const wanted = (questions[i] as Question).allow;
      done(failureOf(reply, error, (body) => body.equals(ALLOWED) === wanted));
    });
  };
}
