import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { HTTP_LIMITS_DEFAULT } from '../../src/http/http-limits.ts';
import type { Http1Parser } from '../../src/http/listener/http-server.ts';
import { LOADS_UWS } from '../support/http1-parsers.ts';
import { byLength, inLong } from '../support/test-length.ts';
import { RawClient, rawCheck, startServer, type TestServer, waitFor } from './start-server.ts';

/*
 * Idle connections are closed after a while, and nothing that was read is lost by it: requests are sent at the moment of the close,
 * hundreds of times. Each is answered, or the server began none, so that a client may send it again. uWebSockets.js closes them after 8 to 12 seconds,
 * which nobody can set, so all of them wait at once; node:http as it is told, and then they wait in turn.
 */
const IDLE_MS = 60;
const ROUNDS = byLength(80, 400);
/** Of uWebSockets.js: the least and the most. */
const FIXED_IDLE_MS = [8_000, 12_000] as const;
const AT_ONCE = 40;

async function start(http1IdleMs = IDLE_MS, http1: Http1Parser = 'node'): Promise<TestServer> {
  const target = await startServer({ limits: { http1IdleMs }, http1 });
  onTestFinished(() => target.server.stop(0));
  return target;
}

type End = { readonly name: string; readonly end: 'answered' | 'closed' };

/** Every request that the server began was answered; those it did not were never read. */
function expectNothingLost(target: TestServer, ends: readonly End[]): void {
  const answered = ends.filter(({ end }) => end === 'answered').map(({ name }) => name);
  const begun = target.begun.filter((name) => name.startsWith('second'));
  expect(begun.toSorted()).toEqual(answered.toSorted());
}

test('the limit is above what balancers and pools keep', async () => {
  expect(HTTP_LIMITS_DEFAULT.http1IdleMs).toBeGreaterThan(90_000);
  const target = await start(HTTP_LIMITS_DEFAULT.http1IdleMs);
  const response = await fetch(`${target.baseUrl}/healthz`);
  expect(response.headers.get('keep-alive')).toBe('timeout=120');
});

test.runIf(LOADS_UWS)(
  'clients are told the least that uWebSockets.js keeps, whatever is set',
  async () => {
    const target = await start(HTTP_LIMITS_DEFAULT.http1IdleMs, 'uws');
    const response = await fetch(`${target.baseUrl}/healthz`);
    expect(response.headers.get('keep-alive')).toBe('timeout=8');
  },
);

test('an idle connection is closed without an answer, one that asks stays', async () => {
  const target = await start();
  const [idle, busy] = [new RawClient(target.port), new RawClient(target.port)];
  onTestFinished(() => void busy.socket.destroy());
  idle.socket.write(rawCheck('a'));
  busy.socket.write(rawCheck('stuck:500'));
  await idle.closed;
  expect(idle.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  await busy.until('"allowed":true');
  expect(busy.received).toContain('"allowed":true');
});

test('a head that does not end, behind another request, is closed in time', async () => {
  const target = await startServer({ limits: { sniffTimeoutMs: 100 }, http1: 'node' });
  onTestFinished(() => target.server.stop(0));
  const client = new RawClient(target.port);
  client.socket.write(rawCheck('a'));
  await client.until('"allowed":true');
  client.socket.write('GET /healthz HTTP/1.1\r\nx');
  await client.closed;
  await waitFor(() => target.server.connectionCount === 0);
});

/** One request, and another one after a pause. */
async function askTwice(target: TestServer, i: number, pauseMs: number): Promise<End> {
  const client = new RawClient(target.port);
  client.socket.write(rawCheck('a', `first-${i}`));
  await client.until('"allowed":true');
  await sleep(pauseMs);
  client.received = '';
  const name = `second-${i}`;
  if (!client.isClosed) client.socket.write(rawCheck('a', name));
  await waitFor(() => client.isClosed || client.received.includes('"allowed":true'));
  client.socket.destroy();
  return { name, end: client.received.includes('"allowed":true') ? 'answered' : 'closed' };
}

/** Idle, with half a head, and with a request that waits for longer than the longest that is kept. */
async function waitOutIdle(target: TestServer): Promise<void> {
  const clients = [0, 1, 2].map(() => new RawClient(target.port));
  const [idle, half, busy] = clients as [RawClient, RawClient, RawClient];
  onTestFinished(() => void busy.socket.destroy());
  for (const client of clients) client.socket.write(rawCheck('a'));
  await Promise.all(clients.map((client) => client.until('"allowed":true')));
  busy.received = '';
  half.socket.write('GET /healthz HTTP/1.1\r\nx');
  busy.socket.write(rawCheck(`stuck:${FIXED_IDLE_MS[1] + 1_000}`));
  await Promise.all([idle.closed, half.closed]);
  for (const client of [idle, half]) expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  await busy.until('"allowed":true');
  expect(busy.received).toContain('"allowed":true');
}

test.runIf(LOADS_UWS)(
  'uWebSockets.js: requests at the moment of the close',
  { timeout: 120_000 },
  async () => {
    const target = await start(IDLE_MS, 'uws');
    const others = waitOutIdle(target);
    const [least, most] = FIXED_IDLE_MS;
    const count = ROUNDS * 10;
    // Some are sent before any is closed, some behind all.
    const pauseOf = (i: number): number => least - 1_000 + ((most - least + 2_000) * i) / count;
    const ends = await Promise.all(
      Array.from({ length: count }, (_, i) => askTwice(target, i, pauseOf(i))),
    );
    await others;
    expectNothingLost(target, ends);
    expect(new Set(ends.map(({ end }) => end)).size, 'both came about').toBe(2);
  },
);

/** How long node:http keeps an idle connection: what is set, and in newer versions a second. */
async function keptMsOf(target: TestServer): Promise<number> {
  const client = new RawClient(target.port);
  client.socket.write(rawCheck('a'));
  await client.until('"allowed":true');
  const sinceMs = performance.now();
  await client.closed;
  return performance.now() - sinceMs;
}

test('raw connections: requests at the moment of the close', { timeout: 120_000 }, async () => {
  const target = await start();
  const keptMs = await keptMsOf(target);
  const ends: End[] = [];
  const one = async (i: number): Promise<void> => {
    // On a busy machine the close may come sooner or later than it was measured: one asks at once, one long after.
    const pauseMs = [0, 3 * keptMs][i] ?? keptMs - 45 + (i % 90);
    ends.push(await askTwice(target, i, pauseMs));
  };
  for (let i = 0; i < ROUNDS; i += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, k) => one(i + k)));
  }
  expectNothingLost(target, ends);
  expect(new Set(ends.map(({ end }) => end)).size, 'both came about').toBe(2);
});

inLong(test)(
  "Node's agent: requests at the moment of the close",
  { timeout: 120_000 },
  async () => {
    const target = await start();
    const keptMs = await keptMsOf(target);
    const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
    onTestFinished(() => agent.destroy());
    const ask = (name: string): Promise<End> =>
      new Promise((resolve, reject) => {
        const request = http.request(
          `${target.baseUrl}/workspace.v1.AuthzService/Check`,
          { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
          (response) => {
            response.resume();
            response.once('end', () => resolve({ name, end: 'answered' }));
          },
        );
        // On a connection that was used before Node.js leaves it to the caller to send again.
        request.once('error', (error) =>
          request.reusedSocket ? resolve({ name, end: 'closed' }) : reject(error),
        );
        request.end(JSON.stringify({ object_id: 'a', relation: name, subject_user_id: 'alice' }));
      });
    const ends: End[] = [];
    for (let i = 0; i < ROUNDS; i += AT_ONCE) {
      ends.push(
        ...(await Promise.all(Array.from({ length: AT_ONCE }, (_, k) => ask(`second-${i + k}`)))),
      );
      await sleep(keptMs - 10 + ((i / AT_ONCE) % 5) * 8);
    }
    expectNothingLost(target, ends);
  },
);

inLong(test)('undici: requests at the moment of the close', { timeout: 120_000 }, async () => {
  const target = await start();
  const keptMs = await keptMsOf(target);
  const pool = new Agent({ connections: AT_ONCE, pipelining: 1, keepAliveTimeout: 60_000 });
  onTestFinished(() => pool.destroy());
  const ask = async (name: string): Promise<End> => {
    try {
      const { body } = await pool.request({
        origin: target.baseUrl,
        path: '/workspace.v1.AuthzService/Check',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ object_id: 'a', relation: name, subject_user_id: 'alice' }),
      });
      await body.text();
      return { name, end: 'answered' };
    } catch {
      return { name, end: 'closed' };
    }
  };
  const ends: End[] = [];
  for (let i = 0; i < ROUNDS; i += AT_ONCE) {
    ends.push(
      ...(await Promise.all(Array.from({ length: AT_ONCE }, (_, k) => ask(`second-${i + k}`)))),
    );
    await sleep(keptMs - 10 + ((i / AT_ONCE) % 5) * 8);
  }
  expectNothingLost(target, ends);
});

const GO_CLIENT = `package main

import ("fmt"; "io"; "net/http"; "os"; "strconv"; "time")

func main() {
	idle, _ := strconv.Atoi(os.Args[2])
	client := &http.Client{Transport: &http.Transport{IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 50}}
	failed := 0
	for i := 0; i < 120; i++ {
		response, err := client.Get(os.Args[1] + "/healthz")
		if err != nil { failed++; fmt.Println(err) } else { io.Copy(io.Discard, response.Body); response.Body.Close() }
		time.Sleep(time.Duration(idle-12+i%24) * time.Millisecond)
	}
	fmt.Println("failed", failed)
}
`;

const hasGo = spawnSync('go', ['version']).status === 0;

inLong(test).skipIf(!hasGo)('a pool of Go: no request fails', { timeout: 300_000 }, async () => {
  const target = await start();
  const keptMs = await keptMsOf(target);
  const folder = mkdtempSync(join(tmpdir(), 'go-pool-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'main.go'), GO_CLIENT);
  const client = spawn('go', ['run', 'main.go', target.baseUrl, String(Math.round(keptMs))], {
    cwd: folder,
  });
  let said = '';
  client.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()));
  client.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
  await once(client, 'close');
  expect(said).toBe('failed 0\n');
});
