import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';
import { sendChunkedCrumbs, sendUnfinished } from './unfinished-bodies.ts';

/* Bodies in pieces of a few bytes cost their size, and not that of the objects that pieces are. */

const MIB = 2 ** 20;
const BODY_BYTES = 7 * MIB;
const STREAMS = 6;
const CHUNKS = 1_000_000;
const BATCH_CHECK = '/workspace.v1.AuthzService/BatchCheck';
const CREATE = '/workspace.v1.WorkspaceService/CreateWorkspace';
/** Twice what was sent, and the garbage of a process that was just started. */
const GROWN_BYTES_MAX = 2 * STREAMS * BODY_BYTES + 64 * MIB;

let service: Service;
beforeEach(async () => {
  service = await startService({ env: { NODE_OPTIONS: '--max-old-space-size=1024' } });
});
afterEach(async () => {
  await service.stop();
});

test.each([
  ['the hot path', BATCH_CHECK, 'application/grpc+proto'],
  ['the general path', CREATE, 'application/json'],
])('DATA frames of 17 bytes on %s', { timeout: 240_000 }, async (name, path, contentType) => {
  const { pid, metricsUrl, baseUrl, token } = service;
  const port = Number(new URL(baseUrl).port);
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    const sent = await sendUnfinished({
      port,
      token,
      path,
      contentType,
      streams: STREAMS,
      bytes: BODY_BYTES,
      pieceBytes: 17,
    });
    expect(sent.sentBytes).toBe(STREAMS * BODY_BYTES);
    sent.client.socket.destroy();
  });
  printToll(`crumbs of 17 bytes, ${name}`, toll);
  expect(toll.grownBytes).toBeLessThan(GROWN_BYTES_MAX);
});

const CONNECTIONS = [1, 2, 3];

test('chunks of one byte', { timeout: 240_000 }, async () => {
  const { pid, metricsUrl, baseUrl, token } = service;
  const port = Number(new URL(baseUrl).port);
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    const options = { port, path: CREATE, token, chunks: CHUNKS };
    const sent = await Promise.all(CONNECTIONS.map(() => sendChunkedCrumbs(options)));
    for (const { socket } of sent) socket.destroy();
  });
  printToll('chunks of one byte', toll);
  expect(toll.grownBytes).toBeLessThan(128 * MIB);
  // node:http parses what it reads at once, chunk by chunk, and the connections may come in one turn.
  expect(toll.stallMs).toBeLessThan(CONNECTIONS.length * STALL_MS_MAX);
});
