import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { printToll, tollOf } from './toll.ts';
import { sendHeldBody, sendUnfinished } from './unfinished-bodies.ts';

/* Bodies whose end never comes share a bounded memory, and leave room for those of others. */

const MIB = 2 ** 20;
const BODY_BYTES = 8 * MIB - 4_096;
const BATCH_CHECK = '/workspace.v1.AuthzService/BatchCheck';
const CREATE = '/workspace.v1.WorkspaceService/CreateWorkspace';
/** The share of one caller, its garbage, and what a process that was just started grows by. */
const GROWN_BYTES_MAX = 320 * MIB;

let service: Service;
beforeEach(async () => {
  service = await startService({ env: { NODE_OPTIONS: '--max-old-space-size=1024' } });
});
afterEach(async () => {
  await service.stop();
});

test.each([
  ['the hot path', 64, BATCH_CHECK, 'application/grpc+proto'],
  ['the hot path', 256, BATCH_CHECK, 'application/grpc+proto'],
  ['the general path', 256, CREATE, 'application/json'],
])('%s: %i streams of 8 MiB', { timeout: 240_000 }, async (name, streams, path, contentType) => {
  const { pid, metricsUrl, baseUrl, token } = service;
  const port = Number(new URL(baseUrl).port);
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    const options = { port, token, path, contentType, bytes: BODY_BYTES, pieceBytes: 16_384 };
    const sent = await sendUnfinished({ ...options, streams });
    await sleep(500);
    sent.client.socket.destroy();
  });
  printToll(`${streams} unfinished streams of 8 MiB, ${name}`, toll);
  expect(toll.grownBytes).toBeLessThan(GROWN_BYTES_MAX);
});

test('96 connections of 8 MiB over HTTP/1.1', { timeout: 240_000 }, async () => {
  const { pid, metricsUrl, baseUrl, token } = service;
  const port = Number(new URL(baseUrl).port);
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    const options = { port, token, path: CREATE, bytes: BODY_BYTES };
    const sent = await Promise.all(Array.from({ length: 96 }, () => sendHeldBody(options)));
    await sleep(1_000);
    for (const { socket } of sent) socket.destroy();
  });
  printToll('96 unfinished bodies of 8 MiB, HTTP/1.1', toll);
  expect(toll.grownBytes).toBeLessThan(GROWN_BYTES_MAX);
});
