import { mixedQuestions } from '../../bench/dataset/questions.ts';
import { World } from '../../bench/dataset/world.ts';
import { type Issue, runAtRate } from '../harness/arrivals.ts';
import { failureOf } from '../harness/client.ts';
import { checkIssue, prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';
import { BATCH_CHECK_PATH, batchBodies, fill } from '../harness/target.ts';

export const noisyNeighbour: Scenario = {
  name: 'noisy-neighbour',
  purpose: 'one tenant asks gently while another sends batches of 10,000 as fast as it can',
  question: 'How much of a tenant’s latency is decided by its neighbour on the same worker?',
  async run(options, start) {
    const { client, open, world, scope } = await prepare(options, start, { GATEWAY_WORKERS: '1' });
    const quiet = { ...scope, tenant_id: 'quiet' };
    const small = new World(0.1, options.seed);
    await fill(client, small.tuples, quiet);
    const issue = checkIssue(open, mixedQuestions(small, 10_000, 'uniform'), quiet);
    const perSecond = options.rate ?? 1000;
    await runAtRate({ perSecond, seconds: 2, issue });
    const alone = await runAtRate({ perSecond, seconds: options.seconds, issue });
    const [noise] = batchBodies(mixedQuestions(world, 10_000, 'uniform'), 10_000, scope);
    let stop = false;
    const flood: Issue = (_, done) =>
      client.post(BATCH_CHECK_PATH, noise as Buffer, (reply, error) =>
        done(failureOf(reply, error)),
      );
    const floods = Array.from({ length: 4 }, async () => {
      while (!stop) await new Promise((done) => flood(0, done));
    });
    const beside = await runAtRate({ perSecond, seconds: options.seconds, issue });
    stop = true;
    await Promise.all(floods);
    await client.close();
    await open.close();
    return { perSecond, alone, beside, p99Ratio: beside.p99Ms / alone.p99Ms };
  },
};
