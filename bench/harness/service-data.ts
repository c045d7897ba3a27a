import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { World } from '../../test/support/dataset/world.ts';
import { BENCH_SEED } from '../worker-data.ts';
// Fills a measured service with the data set; yields nothing by itself.
import { LoadClient } from './client.ts';
import { ADMIN_SECRET, type MeasuredService } from './measured-service.ts';
import { CHECK_PATH, createProject, fill } from './target.ts';

/** Where the data lies. */
export const PEER_SCOPE = { project_id: 'peers', tenant_id: 't1' };

/** Writes the data set (scale 1: 101,000 tuples) through the service, and asks once, so that its index is held. */
export async function fillService(service: MeasuredService, scale: number): Promise<World> {
  const world = new World(scale, BENCH_SEED);
  const client = new LoadClient({
    baseUrl: `http://127.0.0.1:${service.port()}`,
    connections: 8,
  });
  await createProject(client, ADMIN_SECRET, PEER_SCOPE.project_id, DATASET_MODEL_JSON);
  await fill(client, world.tuples, PEER_SCOPE);
  await client.call(CHECK_PATH, {
    ...PEER_SCOPE,
    namespace: 'doc',
    object_id: World.docId(0),
    relation: 'viewer',
    subject_user_id: 'u0',
  });
  await client.close();
  return world;
}
