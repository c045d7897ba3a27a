import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reasonOf } from '../support/management.ts';
import { call, type Service, startService } from '../support/service.ts';

const run = promisify(execFile);

/* The steps of docs/operations.md, "Restore", on the embedded server. */
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-restore-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

const write = async (service: Service, userId: string): Promise<string> => {
  const tuple = {
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewer',
    subject: { user_id: userId },
  };
  const updates = [{ op: 'OP_INSERT', tuple }];
  const { body } = await call(service, 'AuthzService/WriteRelationTuples', { updates });
  return body['consistency_token'] as string;
};
const check = (service: Service, userId: string, token = '') =>
  call(service, 'AuthzService/Check', {
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewer',
    subject_user_id: userId,
    at_least_consistency_token: token,
  });

test(
  'after a restore and a new epoch, tokens from before are refused aloud',
  { timeout: 240_000 },
  async () => {
    const dataDir = join(directory, 'data');
    const backup = join(directory, 'backup');
    let service = await startService({ dataDir });
    const before = await write(service, 'anne');
    await service.stop();
    await run('cp', ['-a', dataDir, backup]);

    service = await startService({ dataDir });
    const lost = await write(service, 'bob');
    expect((await check(service, 'bob', lost)).body).toEqual({ allowed: true });
    await service.stop();

    await rm(dataDir, { recursive: true });
    await run('cp', ['-a', backup, dataDir]);
    const env = { PATH: process.env['PATH'] ?? '', GATEWAY_DATA_DIR: dataDir };
    const script = ['scripts/gatehouse.mjs', 'new-epoch'];
    const { stdout } = await run(process.execPath, script, { env });
    expect(stdout).toMatch(/^Epoch \d+ begins\.$/m);

    service = await startService({ dataDir });
    try {
      expect((await check(service, 'anne')).body).toEqual({ allowed: true });
      expect((await check(service, 'bob')).body).toEqual({ allowed: false });
      for (const token of [before, lost]) {
        const { status, body } = await check(service, 'anne', token);
        expect([status, body['code'], reasonOf(body)]).toEqual([
          400,
          'invalid_argument',
          'TOKEN_INVALID',
        ]);
      }
      const after = await write(service, 'cleo');
      expect((await check(service, 'cleo', after)).body).toEqual({ allowed: true });
      // Beside a service it says in words who runs, and begins none.
      const beside = run(process.execPath, script, { env });
      await expect(beside).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          new RegExp(`^No new epoch was begun: .*pid ${service.pid}\\b.*\\nWhere a service runs`),
        ),
      });
    } finally {
      await service.stop();
    }
  },
);
