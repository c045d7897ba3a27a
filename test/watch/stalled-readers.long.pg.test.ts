import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startInstance, type Instance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type JsonTuple, linesOf, postLines } from '../tuples/support.ts';

/* A reader of a stream over HTTP who takes nothing keeps neither memory nor a place for long. */

let database: TestDatabase;
let instance: Instance;

beforeAll(async () => {
  database = await createTestDatabase();
  instance = await startInstance(database, {
    GATEWAY_WATCH_STREAMS: '2',
    GATEWAY_STREAM_STALL_SECONDS: '3',
  });
  await imported([tupleOf('first')]);
}, 120_000);
afterAll(async () => {
  await instance.stop();
  expect(instance.failures).toEqual([]);
  await database.drop();
});

/** More than sockets hold, into a tenant that holds one already: then each chunk is a change. */
const many = (name: string): JsonTuple[] =>
  Array.from({ length: 60_000 }, (_, i) => tupleOf(`${name}-${i}-${'x'.repeat(200)}`));

function tupleOf(object_id: string): JsonTuple {
  return { namespace: 'doc', object_id, relation: 'viewer', subject: { user_id: 'u' } };
}

async function imported(tuples: readonly JsonTuple[]): Promise<void> {
  const { status } = await postLines(instance, '?tenant_id=t', linesOf(tuples));
  expect(status).toBe(200);
}

/** A request whose answer nobody reads. */
function silentReader(path: string): Socket {
  const { hostname, port } = new URL(instance.baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  // It may be cut, which is what is waited for.
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${instance.token}\r\n\r\n`,
  );
  socket.pause();
  return socket;
}

/** The last that comes until the answer's last chunk, or the connection's end. */
async function restOf(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += (chunk as Buffer).toString();
    text = text.slice(-4_096);
    if (text.endsWith('0\r\n\r\n')) break;
  }
  return text;
}

async function untilShown(line: string): Promise<void> {
  await expect
    .poll(async () => (await instance.renderMetrics()).split('\n'), {
      timeout: 120_000,
      interval: 20,
    })
    .toContain(line);
}

test('a follower by server-sent events who takes nothing is told so and let go', async () => {
  const socket = silentReader('/v1/watch?tenant_id=t');
  await untilShown('gatehouse_watch_streams 1');
  const importing = imported(many('a'));
  await untilShown('gatehouse_stalled_streams_total{method="Watch"} 1');
  const text = await restOf(socket);
  expect(text).toMatch(/\nevent: error\ndata: [^\n]*"deadline_exceeded"[^\n]*was read for 3 s/);
  await untilShown('gatehouse_watch_streams 0');
  await importing;
}, 120_000);

test('so is who exports and takes nothing', async () => {
  await imported(many('b'));
  const socket = silentReader('/v1/tuples?tenant_id=t');
  await untilShown('gatehouse_stalled_streams_total{method="StreamTuples"} 1');
  const text = await restOf(socket);
  expect(text).toMatch(/\n\{"error":[^\n]*"deadline_exceeded"[^\n]*was read for 3 s/);
  expect(text).not.toContain('"end":true');
}, 120_000);
