import { failureOf } from '../../bench/harness/client.ts';
import { WRITE_PATH, writeBody } from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { type Issue, runAtRate } from '../harness/arrivals.ts';
import { checkIssue, prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

export const mixed: Scenario = {
  name: 'mixed',
  purpose: '99 % checks and 1 % writes against checks alone, same rate, same shard',
  question: 'What do writes to the same shard do to the latency of checks?',
  async run(options, start) {
    const { client, open, world, scope } = await prepare(options, start);
    const check = checkIssue(open, mixedQuestions(world, 50_000, 'uniform'), scope);
    const perSecond = options.rate ?? 2000;
    let written = 0;
    // New documents of nobody who is asked about: the known answers stay right.
    const write: Issue = (_, done) => {
      const tuple = {
        namespace: 'doc',
        object_id: `new${written++}`,
        relation: 'viewer',
        subject: 'user:writer',
      };
      open.post(WRITE_PATH, writeBody([tuple], scope), (reply, error) =>
        done(failureOf(reply, error)),
      );
    };
    const both: Issue = (index, done) => (index % 100 === 99 ? write : check)(index, done);
    await runAtRate({ perSecond, seconds: 3, issue: check });
    const without = await runAtRate({ perSecond, seconds: options.seconds, issue: check });
    const withWrites = await runAtRate({ perSecond, seconds: options.seconds, issue: both });
    await client.close();
    await open.close();
    return { perSecond, without, withWrites, p99Ratio: withWrites.p99Ms / without.p99Ms };
  },
};
