import { cpuSeconds } from '../../bench/harness/service.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { runAtRate, runClosed } from '../harness/arrivals.ts';
import { checkIssue, prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

/** Single checks: the saturated rate first, then latencies at half of it. */
function checkScenario(spread: 'uniform' | 'zipf', question: string): Scenario {
  return {
    name: `check-${spread}`,
    purpose: `Check over HTTP JSON, ${spread} mix, every answer compared`,
    question,
    async run(options, start) {
      const { service, client, open, world, scope, fillPerSecond } = await prepare(options, start);
      const questions = mixedQuestions(world, 50_000, spread);
      const issue = checkIssue(client, questions, scope);
      await runClosed({ inFlight: options.connections, seconds: 3, issue });
      const cpuBefore = await cpuSeconds(service.pid);
      const saturated = await runClosed({
        inFlight: options.connections,
        seconds: options.seconds / 2,
        issue,
      });
      const cpuS = (await cpuSeconds(service.pid)) - cpuBefore;
      const perSecond = options.rate ?? Math.floor(saturated.perSecond / 2);
      const atRate = await runAtRate({
        perSecond,
        seconds: options.seconds,
        issue: checkIssue(open, questions, scope),
      });
      await client.close();
      await open.close();
      return { fillPerSecond, saturated, checksPerServerCpuS: saturated.count / cpuS, atRate };
    },
  };
}

export const checkUniform = checkScenario(
  'uniform',
  'How fast are single checks when no question repeats more than by chance?',
);
export const checkZipf = checkScenario(
  'zipf',
  'How fast are single checks when few users and documents draw most of the questions?',
);
