import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { WRITE_PATH, createProject, writeBody } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { type Issue, runClosed } from '../harness/arrivals.ts';
import type { Scenario } from '../harness/scenario.ts';

const CALLERS = 64;

export const writeOne: Scenario = {
  name: 'write-one',
  purpose: 'writes of one tuple by 64 callers, to one tenant and to 64',
  question: 'How many acknowledged writes a second does group commit carry over HTTP?',
  async run(options, start) {
    const service = await start();
    const client = new LoadClient({
      baseUrl: service.baseUrl,
      connections: CALLERS,
      token: service.token,
    });
    await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
    let next = 0;
    const writeTo =
      (tenants: number): Issue =>
      (index, done) => {
        const scope = { project_id: 'load', tenant_id: `t${index % tenants}` };
        const tuple = {
          namespace: 'doc',
          object_id: `n${next++}`,
          relation: 'viewer',
          subject: 'user:writer',
        };
        client.post(WRITE_PATH, writeBody([tuple], scope), (reply, error) =>
          done(failureOf(reply, error)),
        );
      };
    const seconds = options.seconds / 3;
    const oneCaller = await runClosed({ inFlight: 1, seconds, issue: writeTo(1) });
    const oneTenant = await runClosed({ inFlight: CALLERS, seconds, issue: writeTo(1) });
    const manyTenants = await runClosed({ inFlight: CALLERS, seconds, issue: writeTo(CALLERS) });
    await client.close();
    return { oneCaller, oneTenant, manyTenants };
  },
};
