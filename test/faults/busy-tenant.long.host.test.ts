import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, type Service, startService } from '../support/service.ts';

/* One tenant keeps its worker busy until both answer for it, on threads and a database: what is written is seen at once, and stays. */
const START_MS = 180_000;
/** Of one user: a page of them takes a worker long, and the gateway's thread next to nothing. */
const OBJECTS = 20_000;
const FLOOD = 8;
const WRITES_SPREAD = 25;
let service: Service;

beforeAll(async () => {
  service = await startService({
    env: { GATEWAY_WORKERS: '2', GATEWAY_SHARD_WORKERS: '2' },
    startTimeoutMs: START_MS,
  });
}, START_MS);
afterAll(async () => void (await service.stop()), 60_000);

async function spreadShards(): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(/^gatehouse_spread_shards (\d+)$/m.exec(text)?.[1]);
}

async function write(objectIds: readonly string[], userId: string): Promise<void> {
  const updates = objectIds.map((objectId) => {
    const key = { namespace: 'resource', object_id: objectId, relation: 'viewer' };
    return { op: 'OP_INSERT', tuple: { ...key, subject: { user_id: userId } } };
  });
  const { status, body } = await call(service, 'AuthzService/WriteRelationTuples', { updates });
  expect(status, JSON.stringify(body)).toBe(200);
}

/** What both ways show of `u`: a Check of the newest object, and how many objects there are. */
async function look(objectId: string): Promise<{ isSeen: boolean; count: number }> {
  const key = { namespace: 'resource', relation: 'viewer', subject_user_id: 'u' };
  const check = await call(service, 'AuthzService/Check', { ...key, object_id: objectId });
  const list = await call(service, 'AuthzService/ListObjects', key);
  expect([check.status, list.status]).toEqual([200, 200]);
  const ids = list.body['object_ids'] as readonly string[];
  return { isSeen: check.body['allowed'] === true, count: ids.length };
}

test('what is written to a busy tenant is seen by the next read, before and after it is spread', async () => {
  for (let from = 0; from < OBJECTS; from += 1_000) {
    await write(
      Array.from({ length: 1_000 }, (_, i) => `many-${from + i}`),
      'many',
    );
  }
  let isOver = false;
  const flood = Array.from({ length: FLOOD }, async () => {
    const subject = { user_id: 'many' };
    const query = { namespace: 'resource', relation: 'viewer', subject, page_size: 1 };
    while (!isOver) {
      const response = await fetch(`${service.baseUrl}/gatehouse.v1.QueryService/ListObjects`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${service.token}` },
        body: JSON.stringify(query),
      });
      expect(response.status, await response.text()).toBe(200);
    }
  });
  let hasFailed = false;
  const flooded = Promise.all(flood).catch((error: unknown) => {
    hasFailed = true;
    throw error;
  });
  flooded.catch(() => undefined); // awaited below
  let written = 0;
  let writtenSpread = 0;
  while (writtenSpread < WRITES_SPREAD && !hasFailed) {
    const id = `d${written}`;
    await write([id], 'u');
    written += 1;
    for (let i = 0; i < 3; i++) {
      const { isSeen, count } = await look(id);
      expect(isSeen, `write ${written} was acknowledged`).toBe(true);
      expect(count, 'nobody else writes, and nothing goes').toBe(written);
    }
    if ((await spreadShards()) === 1) writtenSpread += 1;
  }
  isOver = true;
  await flooded;
  expect(service.log.some(({ msg }) => msg === 'shard_spread')).toBe(true);
}, 400_000);
