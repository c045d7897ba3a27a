import { request } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import { call } from '../support/service.ts';
import { sharedInstance } from '../support/shared-instance.ts';

/*
 * Bodies of batches lie in memory that is lent and shared, and used again at once. Many calls side by side,
 * each with an answer of its own that is known, tell when one reads another's bytes.
 */
const OBJECTS = 256;
const SIZE = 100;
const CALLS = 600;
const IN_FLIGHT = 48;

const instance = await sharedInstance();

beforeAll(async () => {
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `document-number-${i}`,
      relation: 'viewer',
      subject: { user_id: `user-${i % 7}` },
    },
  }));
  await call(instance, 'AuthzService/WriteRelationTuples', { updates });
});

/** Items whose answers depend on `seed`, as text. */
function bodyOf(seed: number): { readonly body: string; readonly allowed: readonly boolean[] } {
  const picked = Array.from({ length: SIZE }, (_, i) => (seed * 31 + i * 17) % OBJECTS);
  const items = picked.map((n, i) => ({
    namespace: 'resource',
    object_id: `document-number-${n}`,
    relation: 'viewer',
    subject_user_id: `user-${(seed + i) % 7}`,
  }));
  const body = JSON.stringify({ project_id: instance.projectId, items });
  return {
    // An escape is for the general path, which reads the body later.
    body: seed % 5 === 0 ? body.replace('document', '\\u0064ocument') : body,
    allowed: picked.map((n, i) => n % 7 === (seed + i) % 7),
  };
}

/** A call that is given up on its way. */
async function givenUp(body: string): Promise<void> {
  const url = `${instance.baseUrl}/workspace.v1.AuthzService/BatchCheck`;
  const headers = { 'content-type': 'application/json' };
  await new Promise<void>((resolve) => {
    const sent = request(url, { method: 'POST', headers });
    sent.on('error', () => resolve());
    sent.on('close', () => resolve());
    sent.end(body, () => setImmediate(() => sent.destroy()));
  });
}

test('each of many batches side by side is answered from its own bytes', async () => {
  let next = 0;
  let answered = 0;
  const caller = async (): Promise<void> => {
    while (next < CALLS) {
      const seed = next++;
      const { body, allowed } = bodyOf(seed);
      if (seed % 7 === 3) {
        await givenUp(body);
        continue;
      }
      const { status, body: answer } = await call(instance, 'AuthzService/BatchCheck', body);
      expect(status).toBe(200);
      const results = answer['results'] as readonly { readonly allowed: boolean }[];
      expect(results.map((result) => result.allowed)).toEqual(allowed);
      answered += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
  expect(answered).toBeGreaterThan(CALLS / 2);
});
