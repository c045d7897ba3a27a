import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { startService } from '../../bench/harness/service.ts';
import { CHECK_PATH, createProject, writeBody, WRITE_PATH } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type Issue, runClosed, runAtRate } from '../harness/arrivals.ts';
import { openClient } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

const TENANTS = 1000;
const TUPLES_EACH = 100;

export const coldStart: Scenario = {
  name: 'cold-start-1000',
  purpose: '1,000 tenants are asked about right after a restart',
  question:
    'How long until every tenant of a restarted service answers, and how late are the first answers?',
  async run(options) {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-cold-'));
    const env = { GATEWAY_DATA_DIR: dataDir };
    try {
      const tuples = new World(0.1, options.seed).tuples.slice(0, TUPLES_EACH);
      await fillTenants(env, tuples, options.connections);
      const service = await startService(env);
      const client = new LoadClient({
        baseUrl: service.baseUrl,
        connections: options.connections,
        token: service.token,
      });
      const open = openClient(service);
      const issueOn =
        (via: LoadClient): Issue =>
        (index, done) => {
          const body = {
            ...scopeOf(index % TENANTS),
            namespace: 'group',
            object_id: 'g0_0',
            relation: 'member',
            subject_user_id: 'nobody',
          };
          via.post(CHECK_PATH, JSON.stringify(body), (reply, error) =>
            done(failureOf(reply, error)),
          );
        };
      const cold = await runAtRate({ perSecond: TENANTS, seconds: 1, issue: issueOn(open) });
      const warm = await runClosed({
        inFlight: options.connections,
        seconds: 2,
        issue: issueOn(client),
      });
      await client.close();
      await open.close();
      await service.stop();
      return { tenants: TENANTS, tuplesEach: TUPLES_EACH, startMs: service.startMs, cold, warm };
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
};

const scopeOf = (tenant: number): Record<string, string> => ({
  project_id: 'load',
  tenant_id: `t${tenant}`,
});

async function fillTenants(
  env: Readonly<Record<string, string>>,
  tuples: World['tuples'],
  connections: number,
): Promise<void> {
  const service = await startService(env);
  const client = new LoadClient({ baseUrl: service.baseUrl, connections, token: service.token });
  try {
    await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
    let next = 0;
    const filler = async (): Promise<void> => {
      while (next < TENANTS)
        await client.call(WRITE_PATH, JSON.parse(writeBody(tuples, scopeOf(next++))));
    };
    await Promise.all(Array.from({ length: 32 }, filler));
  } finally {
    await client.close();
    await service.stop();
  }
}
