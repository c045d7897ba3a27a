import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http2 from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { call, spawnService, startService } from '../support/service.ts';

/** A process in which koffi does not load, as where it has no binary. */
const WITHOUT_KOFFI = `
import { registerHooks } from 'node:module';
registerHooks({
  resolve(name, context, next) {
    if (name === 'koffi') throw new Error('Cannot find the native Koffi module');
    return next(name, context);
  },
});`;
const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(WITHOUT_KOFFI)}`;

test('without koffi a service with a database serves HTTP/1.1 and, on the next port, HTTP/2', async () => {
  const service = await startService({ postgres: 'shared', env: { NODE_OPTIONS } });
  onTestFinished(() => service.stop().then(() => undefined));
  const check = { namespace: 'resource', object_id: 'a', relation: 'viewer', subject_user_id: 'u' };
  const { status, body } = await call(service, 'AuthzService/Check', check);
  expect([status, body]).toMatchObject([200, { allowed: false }]);
  const detailOf = (msg: string): string =>
    String(service.log.find((line) => line.msg === msg)?.['detail']);
  expect(detailOf('http1_on_node')).toContain('koffi does not load');
  const [, port] =
    /^HTTP\/2 is served on port (\d+), not on \d+$/.exec(detailOf('http2_port')) ?? [];
  const session = http2.connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/workspace.v1.AuthzService/Check',
    'content-type': 'application/json',
    authorization: `Bearer ${service.token}`,
  });
  stream.end(JSON.stringify(check));
  const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
  expect(headers[':status']).toBe(200);
  session.close();
  expect(await service.stop()).toBe(0);
});

test('without koffi and without a database the start ends, and says why', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-koffi-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const child = spawnService(dataDir, { NODE_OPTIONS });
  let text = '';
  for (const out of [child.stdout, child.stderr]) {
    out?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number];
  expect(code).not.toBe(0);
  expect(text).toContain('koffi does not load here');
  expect(text).toContain('STORE_UNAVAILABLE');
});
