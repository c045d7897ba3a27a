import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, type Service, startService } from '../support/service.ts';
import { ok } from './support.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const ROOT = join(import.meta.dirname, '../..');

type Ended = { readonly code: number; readonly output: string };

/** `npm run fsck`, as who has it runs it. */
function fsck(token: string, url = service.metricsUrl, ...more: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', GATEWAY_SERVICE_AUTH_TOKENS: token };
  const args = [join(ROOT, 'scripts/gatehouse.mjs'), 'fsck', '--url', url, ...more];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

function write(user: string): Promise<unknown> {
  const tuple = {
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewer',
    subject: { user_id: user },
  };
  const updates = [{ op: 'OP_INSERT', tuple }];
  return call(service, 'AuthzService/WriteRelationTuples', { tenant_id: 't', updates }).then(ok);
}

async function isAllowed(user: string): Promise<boolean> {
  const question = { tenant_id: 't', namespace: 'doc', object_id: 'd', relation: 'viewer' };
  const body = { ...question, subject_user_id: user };
  return ok(await call(service, 'AuthzService/Check', body))['allowed'] === true;
}

test('the command compares what is loaded, and its exit code says whether all agrees', async () => {
  expect(await fsck(service.token)).toEqual({
    code: 0,
    output: expect.stringMatching(
      /^0 shards, 0 rows in \S+ s: 0 differed, 0 could not be compared\n$/,
    ),
  });
  await write('u');
  expect(await isAllowed('u')).toBe(true);
  expect(await fsck(service.token)).toEqual({
    code: 0,
    output: expect.stringMatching(/^1 shards, 1 rows in \S+ s: 0 differed/),
  });
  // A row that never went through the service: the index does not know of it.
  const { Client } = await import('pg');
  const { readFileSync } = await import('node:fs');
  const client = new Client({
    host: join(service.dataDir, 'socket'),
    user: 'gatehouse',
    database: 'gatehouse',
    password: readFileSync(join(service.dataDir, 'postgres.password'), 'utf8').trim(),
  });
  await client.connect();
  await client.query(
    `insert into relation_tuple select project_id, tenant_id, namespace, object_id, relation, '', 'sneaky', '',
       null, null, null, seq from relation_tuple limit 1`,
  );
  await client.end();
  expect(await isAllowed('sneaky')).toBe(false);
  expect(await fsck(service.token)).toEqual({
    code: 1,
    output: expect.stringMatching(/^1 shards, .* 1 differed/),
  });
  const [line] = service.log.filter(({ msg }) => msg === 'index_differs');
  expect(line).toMatchObject({ level: 'error', shard: expect.stringMatching(/^[0-9a-f]{8}$/) });
  expect(JSON.stringify(line)).not.toMatch(/sneaky/);
  expect(await isAllowed('sneaky')).toBe(true);
  const { code, output } = await fsck(service.token, service.metricsUrl, '--json');
  expect(code).toBe(0);
  expect(JSON.parse(output)).toMatchObject({ state: 'done', differences: 0, unfinished: 0 });
}, 120_000);

test('the route asks for the token, refuses pages, and is not on the port of calls', async () => {
  expect(await fsck('wrong')).toEqual({
    code: 2,
    output: expect.stringMatching(/^error: .*credential|^error: .*token/),
  });
  const bearer = { authorization: `Bearer ${service.token}` };
  const ask = async (base: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(`${base}/fsck`, { method: 'POST', headers })).status;
  expect(await ask(service.metricsUrl, { ...bearer, origin: 'http://evil.example' })).toBe(403);
  expect(await ask(service.metricsUrl, {})).toBe(401);
  expect(await ask(service.metricsUrl, bearer)).toBe(202);
  expect([404, 415]).toContain(await ask(service.baseUrl, bearer));
  expect(await fsck(service.token, 'http://127.0.0.1:1')).toMatchObject({ code: 2 });
});
