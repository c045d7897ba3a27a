import { LoadClient, failureOf } from '../../bench/harness/client.ts';
import { WRITE_PATH, createProject, writeBody } from '../../bench/harness/target.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { type Issue, runAtRate, type RateResult } from '../harness/arrivals.ts';
import type { Scenario } from '../harness/scenario.ts';

const LARGE_TUPLES = 10_000;
const TENANTS = 16;
/** Single writes a second, far from what the service could take. */
const PER_SECOND = 50;
/** So often in turns: the machine is not always the same. */
const TURNS = 3;

const tupleOf = (objectId: string) => ({
  namespace: 'doc',
  object_id: objectId,
  relation: 'viewer',
  subject: 'user:writer',
});

export const largeWrites: Scenario = {
  name: 'large-writes',
  purpose: 'single writes of 16 tenants, alone and beside one that writes 10,000 tuples at a time',
  question: 'How much longer does a write take beside the large ones of another tenant?',
  async run(options, start) {
    const service = await start({ GATEWAY_MAX_WRITE_UPDATES: String(LARGE_TUPLES) });
    const clientOf = (connections: number): LoadClient =>
      new LoadClient({ baseUrl: service.baseUrl, connections, token: service.token });
    const client = clientOf(64);
    const large = clientOf(1);
    await createProject(client, service.adminSecret, 'load', DATASET_MODEL_JSON);
    let next = 0;
    const single: Issue = (index, done) => {
      const scope = { project_id: 'load', tenant_id: `t${index % TENANTS}` };
      client.post(WRITE_PATH, writeBody([tupleOf(`n${next++}`)], scope), (reply, error) =>
        done(failureOf(reply, error)),
      );
    };
    // Made beforehand, so that making them is not measured.
    const bodies = Array.from({ length: 8 }, (_, n) =>
      writeBody(
        Array.from({ length: LARGE_TUPLES }, (__, i) => tupleOf(`l${n}-${i}`)),
        { project_id: 'load', tenant_id: 'large' },
      ),
    );
    const writeLarge = (n: number): Promise<string | undefined> =>
      new Promise((resolve) => {
        const body = bodies[n % bodies.length];
        if (body === undefined) throw new Error('there are bodies');
        large.post(WRITE_PATH, body, (reply, error) => resolve(failureOf(reply, error)));
      });
    const perSecond = options.rate ?? PER_SECOND;
    const seconds = options.seconds / (2 * TURNS);
    const measured = (): Promise<RateResult> => runAtRate({ perSecond, seconds, issue: single });
    await runAtRate({ perSecond, seconds: 3, issue: single });
    const turns: unknown[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const alone = await measured();
      let isOver = false;
      const failures: string[] = [];
      let largeCount = 0;
      const pressing = (async () => {
        while (!isOver) {
          const failure = await writeLarge(largeCount++);
          if (failure !== undefined) failures.push(failure);
        }
      })();
      const beside = await measured();
      isOver = true;
      await pressing;
      const ratio = Math.round((beside.p99Ms / alone.p99Ms) * 100) / 100;
      turns.push({ alone, beside, ratio, largeCount, failures: failures.slice(0, 3) });
    }
    await client.close();
    await large.close();
    return { perSecond, turns };
  },
};
