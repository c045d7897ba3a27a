import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { call, startService, type Service } from '../support/service.ts';

/*
 * What a Check leaves must die young. A chain from the old generation to the new one, as tables of a Map are after each
 * collection under load, promotes it: 600 bytes a Check, and a full collection every second.
 */
const PROMOTED_BYTES_MAX = 60;
/** Compiled code and the like, whatever is asked. */
const FIXED_BYTES = 1024 * 1024;
const ROUNDS = 3;
const WARM_CHECKS = 10_000;
const CHECKS = 15_000;
const CALLERS = 32;
const START_MS = 180_000;
let service: Service;

beforeAll(async () => {
  const preload = pathToFileURL('test/support/run-collecting.ts').href;
  service = await startService({
    env: { NODE_OPTIONS: `--expose-gc --import=${preload}`, GATEWAY_WORKERS: '1' },
    startTimeoutMs: START_MS,
  });
}, START_MS);
afterAll(async () => void (await service.stop()), 60_000);

type Collected = { readonly beforeBytes: number; readonly afterBytes: number };

async function collect(): Promise<Collected> {
  const told = (): readonly unknown[] => service.log.filter(({ msg }) => msg === 'collected');
  const count = told().length;
  process.kill(service.pid, 'SIGUSR2');
  return vi.waitFor(() => {
    const all = told();
    if (all.length === count) throw new Error('has not collected yet');
    return all.at(-1) as Collected;
  }, 120_000);
}

test('what a Check leaves dies young, also after a full collection under load', async () => {
  const question = { namespace: 'resource', object_id: 'o', relation: 'viewer', tenant_id: 't' };
  const body = { ...question, subject_user_id: 'u' };
  expect((await call(service, 'AuthzService/Check', body)).status).toBe(200);
  /** Asks until `isEnough` says so; the number of answers. */
  const loadUntil = async (isEnough: (count: number) => boolean): Promise<number> => {
    let count = 0;
    const caller = async (): Promise<void> => {
      while (!isEnough(count)) {
        expect((await call(service, 'AuthzService/Check', body)).status).toBe(200);
        count += 1;
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    return count;
  };
  await loadUntil((count) => count > WARM_CHECKS);
  const promoted: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // While requests are under way, so that what holds them grows old.
    let isCollected = false;
    const loading = loadUntil((count) => isCollected && count > CHECKS);
    const first = await collect();
    isCollected = true;
    const checks = await loading;
    const second = await collect();
    promoted.push((second.beforeBytes - first.afterBytes - FIXED_BYTES) / checks);
  }
  // A full collection of its own in between hides it in one round.
  expect(Math.max(...promoted)).toBeLessThan(PROMOTED_BYTES_MAX);
}, 300_000);
