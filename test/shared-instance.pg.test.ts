import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import setup from './support/global-instance.ts';
import type { SharedReady } from './support/run-shared-instance.ts';
import { call } from './support/service.ts';
import { newProject, sharedInstance } from './support/shared-instance.ts';

/* The instance that files share: none sees another's project, and none fails for what another did. */
const instance = await sharedInstance();
const UPDATE = {
  op: 'OP_INSERT',
  tuple: { namespace: 'doc', object_id: 'a', relation: 'viewer', subject: { user_id: 'ann' } },
};
const QUESTION = { namespace: 'doc', object_id: 'a', relation: 'viewer', subject_user_id: 'ann' };

let address = '';
let stop: () => Promise<void>;

async function ask(what: string): Promise<unknown> {
  const response = await fetch(`${address}/${what}`);
  return await response.json();
}

/** Another hub than the one of the run, whose instance this file may kill. */
beforeAll(async () => {
  stop = await setup({
    getProvidedContext: () => ({ postgres: inject('postgres'), sharedInstance: '' }),
    provide: (_key, value) => (address = value as string),
  });
});
afterAll(async () => await stop());

test('what one file writes is in no project of another', async () => {
  const other = { ...instance, projectId: await newProject(instance) };
  const written = await call(instance, 'AuthzService/WriteRelationTuples', { updates: [UPDATE] });
  expect(written.status).toBe(200);
  const allowed = async (service: typeof instance): Promise<unknown> =>
    (await call(service, 'AuthzService/Check', QUESTION)).body;
  expect(await allowed(instance)).toEqual({ allowed: true });
  expect(await allowed(other)).toEqual({ allowed: false });
  const { body } = await call(other, 'AuthzService/ReadRelationTuples', {});
  expect(body['tuples']).toEqual([]);
});

test('one that was killed is reported once, and the next file has a new one', async () => {
  const first = (await ask('')) as SharedReady;
  expect(((await ask('')) as SharedReady).pid).toBe(first.pid);
  expect(await ask('failures')).toEqual([]);
  process.kill(first.pid, 'SIGKILL');
  const ended: unknown[] = [];
  await expect
    .poll(async () => ended.push(...((await ask('failures')) as unknown[])))
    .toBeGreaterThan(0);
  expect(ended).toEqual(['the shared instance ended with SIGKILL']);
  expect(await ask('failures')).toEqual([]);
  const second = (await ask('')) as SharedReady;
  expect(second.pid).not.toBe(first.pid);
  expect(await newProject(second)).toMatch(/^file-/);
});
