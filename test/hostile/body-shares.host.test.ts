import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startNotify } from '../notify/support/notify-process.ts';
import { makeWorkspace, startRunner } from '../support/runner.ts';
import { startService } from '../support/service.ts';
import { sendHeldBody, sendUnfinished } from './unfinished-bodies.ts';

/* While one caller holds all that it may, by many connections and streams, others are served: in each of the services. */

const MIB = 2 ** 20;
const BATCH_CHECK = '/workspace.v1.AuthzService/BatchCheck';
const NOTIFY = '/notify.v1.NotifyService/Notify';
const INBOX = '/api/sync/inbox';

/** A figure of the service, added up over its labels. */
async function figure(metricsUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

async function post(url: string, token: string, body: string): Promise<Response> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return fetch(url, { method: 'POST', headers, body });
}

test('authorization: streams and connections of one caller', { timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-callers-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'callers.json');
  const scopes = [{ projects: ['*'], tenants: ['*'], services: ['*'], methods: ['*'] }];
  const callers = ['ann', 'ben'].map((name) => ({ name, tokens: [`${name}-token`], scopes }));
  writeFileSync(file, JSON.stringify({ callers }));
  const service = await startService({
    postgres: 'shared',
    env: {
      GATEWAY_SERVICE_AUTH_TOKENS: '',
      GATEWAY_CALLERS_FILE: file,
      GATEWAY_MAX_BODY_BYTES: String(2 * MIB),
      GATEWAY_BODY_MEMORY_BYTES: String(16 * MIB),
      GATEWAY_WORKERS: '1',
    },
  });
  onTestFinished(async () => void (await service.stop()));
  const { baseUrl, metricsUrl } = service;
  const port = Number(new URL(baseUrl).port);
  const ann = { port, token: 'ann-token', path: BATCH_CHECK };
  const held = await Promise.all(
    [1, 2].map(() =>
      sendUnfinished({
        ...ann,
        contentType: 'application/grpc+proto',
        streams: 8,
        bytes: MIB,
        pieceBytes: 16_384,
      }),
    ),
  );
  const more = await Promise.all([1, 2, 3].map(() => sendHeldBody({ ...ann, bytes: MIB })));
  onTestFinished(() => {
    for (const { client } of held) client.socket.destroy();
    for (const { socket } of more) socket.destroy();
  });
  await expect.poll(() => figure(metricsUrl, 'gatehouse_bodies_refused_total')).toBeGreaterThan(0);
  expect(await figure(metricsUrl, 'gatehouse_body_memory_bytes')).toBeLessThanOrEqual(8 * MIB);
  const item = '{"namespace":"doc","object_id":"a","relation":"viewer","subject_user_id":"u"}';
  const question = `{"project_id":"default","items":[${item}]${' '.repeat(MIB / 2)}}`;
  const answer = await post(`${baseUrl}${BATCH_CHECK}`, 'ben-token', question);
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('results')]);
  for (const { client } of held) client.socket.destroy();
  for (const { socket } of more) socket.destroy();
  await expect.poll(() => figure(metricsUrl, 'gatehouse_body_memory_bytes')).toBe(0);
});

test('notifications: connections with one of the tokens', { timeout: 120_000 }, async () => {
  const service = await startNotify({
    NOTIFY_SERVICE_AUTH_TOKENS: 'ann-token,ben-token',
    NOTIFY_BODY_MEMORY_BYTES: String(8 * MIB),
  });
  const { internalUrl, metricsUrl } = service;
  const port = Number(new URL(internalUrl).port);
  const ann = { port, token: 'ann-token', path: NOTIFY, bytes: 125_000 };
  const held = await Promise.all(Array.from({ length: 60 }, () => sendHeldBody(ann)));
  onTestFinished(() => {
    for (const { socket } of held) socket.destroy();
  });
  await expect.poll(() => figure(metricsUrl, 'notify_bodies_refused_total')).toBeGreaterThan(0);
  expect(await figure(metricsUrl, 'notify_body_memory_bytes')).toBeLessThanOrEqual(4 * MIB);
  const notification =
    '{"tenant_id":"acme","user_id":"ann","channels":["CHANNEL_LIVE"],"title":"Build passed"';
  const url = `${internalUrl}${NOTIFY}`;
  const answer = await post(url, 'ben-token', `${notification}${' '.repeat(120_000)}}`);
  expect(answer.status).toBe(200);
  for (const { socket } of held) socket.destroy();
  await expect.poll(() => figure(metricsUrl, 'notify_body_memory_bytes')).toBe(0);
});

test('runner: webhooks that nobody has signed', { timeout: 120_000 }, async () => {
  const { url, runner } = await startRunner(makeWorkspace({}), {
    RUNNER_METRICS_PORT: '0',
    RUNNER_BODY_MEMORY_BYTES: String(100 * MIB),
  });
  const metricsUrl = `http://127.0.0.1:${runner.metricsPort}`;
  const port = Number(new URL(url).port);
  const webhook = { port, token: 'none', path: INBOX, bytes: 24 * MIB };
  const held = await Promise.all(Array.from({ length: 4 }, () => sendHeldBody(webhook)));
  onTestFinished(() => {
    for (const { socket } of held) socket.destroy();
  });
  await expect.poll(() => figure(metricsUrl, 'runner_bodies_refused_total')).toBeGreaterThan(0);
  expect(await figure(metricsUrl, 'runner_body_memory_bytes')).toBeLessThanOrEqual(50 * MIB);
  const answer = await post(`${url}/api/runs`, 'none', `{"workflow":"x"${' '.repeat(200_000)}}`);
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('workflow')]);
  for (const { socket } of held) socket.destroy();
  await expect.poll(() => figure(metricsUrl, 'runner_body_memory_bytes')).toBe(0);
});
