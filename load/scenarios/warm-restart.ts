import { setTimeout as delay } from 'node:timers/promises';
import { CHECK_PATH } from '../../bench/harness/target.ts';
import { checkBody, fillTenants, type Instances, prepareInstances } from '../harness/instances.ts';
import type { Scenario } from '../harness/scenario.ts';

const TENANT = 'large';
/** Workers say what they were asked for every two seconds. */
const TOLD_MS = 5_000;

async function ask(instances: Instances, token: string, n: number): Promise<number> {
  const beganMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${instances.ports[0]}${CHECK_PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: checkBody(TENANT, n),
  });
  const text = await response.text();
  if (text !== '{"allowed":true}') throw new Error(`unexpected answer ${response.status} ${text}`);
  return Math.round(performance.now() - beganMs);
}

/** Scale 1 is a tenant of 1 M tuples here. */
export const warmRestart: Scenario = {
  name: 'warm-restart',
  purpose:
    'an instance with one tenant of 1 M tuples (x scale) is restarted, with and without warming',
  question: 'What does a restart cost the first caller, and how much later is the instance ready?',
  async run({ scale }) {
    const tuples = 1_000_000 * scale;
    const instances = await prepareInstances(1);
    try {
      await fillTenants(instances, [TENANT], tuples);
      const env = {
        GATEWAY_INDEX_BYTES: String(8 * 1024 ** 3),
        GATEWAY_WARM_UP_SECONDS: '600',
        // Loading the largest takes longer than calls may by default.
        GATEWAY_REQUEST_TIMEOUT_MS: '600000',
        GATEWAY_LOAD_TIMEOUT_SECONDS: '600',
      };
      const first = await instances.start(0, env);
      const coldMs = await ask(instances, first.token, 1);
      const warmMs = await ask(instances, first.token, 2);
      await delay(TOLD_MS);
      await first.stop();
      const rounds: Record<string, number>[] = [];
      for (let round = 0; round < (scale > 1 ? 1 : 3); round++) {
        const cold = await instances.start(0, { ...env, GATEWAY_WARM_UP_SECONDS: '0' });
        const coldFirstMs = await ask(instances, cold.token, 3);
        await cold.stop();
        const warm = await instances.start(0, env);
        const warmFirstMs = await ask(instances, warm.token, 4);
        await warm.stop();
        rounds.push({
          readyWithoutMs: Math.round(cold.startMs),
          firstAnswerWithoutMs: coldFirstMs,
          readyWithMs: Math.round(warm.startMs),
          firstAnswerWithMs: warmFirstMs,
        });
      }
      return { tuples, coldMs, warmMs, rounds };
    } finally {
      await instances.stop();
    }
  },
};
