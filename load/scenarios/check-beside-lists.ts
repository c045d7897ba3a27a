import { failureOf } from '../../bench/harness/client.ts';
import { LIST_OBJECTS_PATH, fill } from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { runAtRate } from '../harness/arrivals.ts';
import { checkIssue, prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

const ROWS = 100_000;
const LISTERS = 10;

export const checkBesideLists: Scenario = {
  name: 'check-beside-lists',
  purpose: 'checks while ten lists of 100,000 objects are being answered all the time',
  question: 'Does one long answer hold up the short ones?',
  async run(options, start) {
    const { client, open, world, scope } = await prepare(options, start);
    const long = Array.from({ length: ROWS }, (_, i) => ({
      namespace: 'doc',
      object_id: `long${i}`,
      relation: 'viewer',
      subject: 'user:reader',
    }));
    await fill(client, long, scope);
    const issue = checkIssue(open, mixedQuestions(world, 50_000, 'uniform'), scope);
    const perSecond = options.rate ?? 1000;
    await runAtRate({ perSecond, seconds: 2, issue });
    const without = await runAtRate({ perSecond, seconds: options.seconds, issue });
    let [stop, lists] = [false, 0];
    let answer: Buffer = Buffer.alloc(0);
    const query = { ...scope, namespace: 'doc', relation: 'viewer', subject_user_id: 'reader' };
    const body = JSON.stringify(query);
    const listers = Array.from({ length: LISTERS }, async () => {
      while (!stop) {
        // Not parsed here: the generator's pauses would count as the service's.
        answer = await new Promise((resolve, reject) => {
          client.post(LIST_OBJECTS_PATH, body, (reply, error) => {
            const failure = failureOf(reply, error);
            if (reply === undefined || failure !== undefined) reject(new Error(failure));
            else resolve(reply.body);
          });
        });
        lists++;
      }
    });
    const beside = await runAtRate({ perSecond, seconds: options.seconds, issue });
    stop = true;
    await Promise.all(listers);
    await client.close();
    await open.close();
    const rows = (JSON.parse(answer.toString()) as { object_ids: string[] }).object_ids.length;
    return { perSecond, without, beside, p99Ratio: beside.p99Ms / without.p99Ms, lists, rows };
  },
};
