import { setTimeout as sleep } from 'node:timers/promises';
import { BroadcastChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { startInstance } from '../support/instance.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { byLength } from '../support/test-length.ts';
import { type Answer, attempt, type Dice, ok, seededDice, type Target } from './support.ts';

const TENANTS = ['t0', 't1', 't2', 't3'];
const WORKERS = 2;
/** Of callers that do not wait for kills. */
const STEPS = byLength(15, 60);
const KILLS = byLength(2, 6);
const CALLERS = byLength(4, 8);

/** Success or `unavailable`; anything else throws. */
function isAnswered(answer: Answer | undefined): boolean {
  if (answer?.status === 503 && answer.body['code'] === 'unavailable') return false;
  ok(answer);
  return true;
}

/** Grants and revokes in turn until it is over, and checks each; returns what was stale. */
async function caller(
  target: Target,
  name: string,
  dice: Dice,
  isOver: (step: number) => boolean,
): Promise<string[]> {
  const stale: string[] = [];
  for (let step = 0; !isOver(step); step++) {
    const tenantId = TENANTS[dice.below(TENANTS.length)] ?? '';
    const key = { namespace: 'resource', object_id: `${name}-${step >> 1}`, relation: 'viewer' };
    // Writes do not need the workers, so they always succeed.
    const tuple = { ...key, subject: { user_id: 'u' } };
    const granted = dice.below(2) === 0;
    for (const op of granted ? ['OP_INSERT'] : ['OP_INSERT', 'OP_DELETE']) {
      const body = { tenant_id: tenantId, updates: [{ op, tuple }] };
      ok(await attempt(target, 'AuthzService/WriteRelationTuples', body));
    }
    const question = { tenant_id: tenantId, ...key, subject_user_id: 'u' };
    const answer = await attempt(target, 'AuthzService/Check', question);
    if (isAnswered(answer) && answer?.body['allowed'] !== granted) stale.push(`${name} ${step}`);
  }
  return stale;
}

test('a worker that dies under load fails what it held at once, and is fresh afterwards', async () => {
  const dice = seededDice('kill of a worker');
  const database = await createTestDatabase();
  const filename = new URL('./mortal-worker.ts', import.meta.url).href;
  const instance = await startInstance(database, { GATEWAY_WORKERS: String(WORKERS) }, filename);
  const channel = new BroadcastChannel('end-worker');
  const targets = [instance.baseUrl, instance.generalUrl].map((baseUrl) => ({
    ...instance,
    baseUrl,
  }));
  const restarts = async (): Promise<number> => {
    const text = await instance.renderMetrics();
    return Number(/^\w*worker_restarts_total (\d+)/m.exec(text)?.[1]);
  };
  try {
    let isKilled = false;
    const callers = Array.from({ length: CALLERS }, (_, index) =>
      caller(targets[index % 2] as Target, `c${index}`, dice, (step) => isKilled && step >= STEPS),
    );
    for (let kill = 1; kill <= KILLS; kill++) {
      await sleep(dice.below(100));
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      channel.postMessage(dice.below(WORKERS));
      while ((await restarts()) < kill) await sleep(5);
      while (!instance.workers.isReady) await sleep(5);
    }
    isKilled = true;
    expect((await Promise.all(callers)).flat()).toEqual([]);
    const after = caller(targets[0] as Target, 'after', dice, (step) => step >= STEPS);
    expect(await after).toEqual([]);
    expect(instance.failures).toEqual([]);
  } finally {
    channel.close();
    await instance.stop();
    await database.drop();
  }
}, 120_000);
