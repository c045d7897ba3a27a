import { afterAll, expect, test } from 'vitest';
import { startInstance } from '../support/instance.ts';
import { createTestDatabase } from '../support/postgres.ts';

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const CALLERS = 8;
const STEPS = 25;

let state = SEED;
/** A linear congruential generator (Numerical Recipes): good enough to drop messages. */
const random = (): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};

const database = await createTestDatabase();
// No change feed runs here and the poll is far off: only the demand of the read itself is left.
const env = { GATEWAY_POLL_INTERVAL_MS: '60000' };
const instance = await startInstance(database, env, undefined, () => random() < 0.5);
afterAll(async () => {
  await instance.stop();
  await database.drop();
});

async function call(base: string, method: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${base}/workspace.v1.AuthzService/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${instance.token}` },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  expect([response.status, answer]).toEqual([200, answer]);
  return answer;
}

test(`half of all changes never reach the worker: no read is stale (SEED=${SEED})`, async () => {
  const stale: string[] = [];
  const caller = async (number: number): Promise<void> => {
    const scope = { tenant_id: `t${number % 3}` };
    const object = { namespace: 'doc', object_id: `d${number}`, relation: 'viewer' };
    for (let step = 0; step < STEPS; step++) {
      const isInsert = step % 2 === 0;
      const tuple = { ...object, subject: { user_id: 'u' } };
      const op = isInsert ? 'OP_INSERT' : 'OP_DELETE';
      const written = await call(instance.baseUrl, 'WriteRelationTuples', {
        ...scope,
        updates: [{ op, tuple }],
      });
      const tokens = [undefined, written['consistency_token']];
      for (const base of [instance.baseUrl, instance.generalUrl]) {
        for (const token of tokens) {
          const { allowed } = await call(base, 'Check', {
            ...scope,
            ...object,
            subject_user_id: 'u',
            ...(token === undefined ? {} : { at_least_consistency_token: token }),
          });
          if (allowed !== isInsert) stale.push(`caller ${number}, step ${step}`);
        }
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, number) => caller(number)));
  expect(stale).toEqual([]);
  expect(instance.failures).toEqual([]);
});
