import { type LoadClient, failureOf } from '../../bench/harness/client.ts';
import { cpuSeconds } from '../../bench/harness/service.ts';
import { BATCH_CHECK_PATH, batchAnswer, batchBodies } from '../../bench/harness/target.ts';
import { type Question, mixedQuestions } from '../../test/support/dataset/questions.ts';
import { type Issue, runAtRate, runClosed } from '../harness/arrivals.ts';
import { prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

const SIZE = 100;

export const batchCheck100: Scenario = {
  name: 'batch-check-100',
  purpose: 'BatchCheck of 100 items over HTTP JSON, uniform mix, one worker',
  question:
    'How many items a second does one worker decide, and how long does a page of 100 take at half of that?',
  async run(options, start) {
    const prepared = await prepare(options, start, { GATEWAY_WORKERS: '1' });
    const { service, client, open, world, scope, fillPerSecond } = prepared;
    const questions: Question[] = mixedQuestions(world, 50_000, 'uniform');
    const bodies = batchBodies(questions, SIZE, scope);
    const wanted = bodies.map((_, b) => batchAnswer(questions.slice(b * SIZE, (b + 1) * SIZE)));
    const issueOn =
      (via: LoadClient): Issue =>
      (index, done) => {
        const b = index % bodies.length;
        via.post(BATCH_CHECK_PATH, bodies[b] as Buffer, (reply, error) => {
          done(failureOf(reply, error, (body) => body.equals(wanted[b] as Buffer)));
        });
      };
    const issue = issueOn(client);
    const inFlight = Math.min(16, options.connections);
    await runClosed({ inFlight, seconds: 3, issue });
    const cpuBefore = await cpuSeconds(service.pid);
    const saturated = await runClosed({ inFlight, seconds: options.seconds / 2, issue });
    const cpuS = (await cpuSeconds(service.pid)) - cpuBefore;
    const perSecond = options.rate ?? Math.floor(saturated.perSecond / 2);
    const atRate = await runAtRate({ perSecond, seconds: options.seconds, issue: issueOn(open) });
    await client.close();
    await open.close();
    return {
      fillPerSecond,
      itemsPerSecond: saturated.perSecond * SIZE,
      itemsPerServerCpuS: (saturated.count * SIZE) / cpuS,
      saturated,
      atRate,
    };
  },
};
