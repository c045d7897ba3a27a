import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { JwksFeed } from '../../src/gateway/callers/jwks-feed.ts';

/* What counts as the keys of an issuer. That a service lives by them is in jwt.host.test.ts. */

type Answer = {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
};

const asked: string[] = [];
let answer: Answer;
let good: Answer;
let jwk: JWK;
let server: Server;

const withKeys = (keys: unknown, more: object = {}): Answer => ({
  status: 200,
  body: JSON.stringify({ keys, ...more }),
});

beforeAll(async () => {
  const { publicKey } = await generateKeyPair('ES256', { extractable: true });
  jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' };
  good = withKeys([jwk]);
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const { status, headers, body } = request.url === '/keys' ? answer : good;
    response.writeHead(status, headers);
    response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** A feed that has the good keys, and what became of each fetch: null, or the problem. */
async function feedWithKeys() {
  const { port } = server.address() as AddressInfo;
  const problems: (string | null)[] = [];
  const onChanged = vi.fn<() => void>();
  const feed = new JwksFeed({
    definition: {
      issuer: 'https://issuer.example',
      audience: 'gatehouse',
      algorithms: ['ES256'],
      jwksUrl: `http://127.0.0.1:${port}/keys`,
      clockToleranceSeconds: 0,
    },
    onChanged,
    onFetched: (problem) => problems.push(problem),
  });
  onTestFinished(() => feed.stop());
  /** Fetches, and waits for what came of it. */
  const fetched = async (next: Answer): Promise<string | null> => {
    answer = next;
    const before = problems.length;
    feed.start();
    await expect.poll(() => problems.length).toBe(before + 1);
    return problems.at(-1) ?? null;
  };
  expect(feed.set).toBeNull();
  expect(await fetched(good)).toBeNull();
  return { feed, fetched, onChanged };
}

test.each<[string, () => Answer, string]>([
  ['a place elsewhere', () => ({ ...good, status: 302, headers: { location: '/elsewhere' } }), ''],
  ['an error', () => ({ ...good, status: 500 }), 'status 500'],
  ['too much', () => withKeys([jwk], { a: 'x'.repeat(300_000) }), 'more than 262144 bytes'],
  ['no JSON', () => ({ status: 200, body: '{' }), 'not valid JSON'],
  ['null', () => ({ status: 200, body: 'null' }), 'no list of up to 100 keys'],
  ['no list', () => withKeys({ one: jwk }), 'no list of up to 100 keys'],
  ['too many keys', () => withKeys(Array(101).fill(jwk)), 'no list of up to 100 keys'],
  ['no key', () => withKeys([]), 'no public key'],
  ['keys that both sides know', () => withKeys([{ kty: 'oct', k: 'AAAA' }, 7]), 'no public key'],
])('%s is not taken for keys, and those in force stay', async (_, bad, problem) => {
  const { feed, fetched, onChanged } = await feedWithKeys();
  const { set } = feed;
  expect(set).not.toBeNull();
  expect(await fetched(bad())).toContain(problem);
  expect(feed.set).toBe(set);
  expect(feed.keyText('one')).toContain('"kid":"one"');
  expect(onChanged).toHaveBeenCalledTimes(1);
  expect(asked).not.toContain('/elsewhere');
  // Not so soon after the last time.
  expect(feed.refresh()).toBe(false);
});

test('other keys take the place of those in force, the same ones change nothing', async () => {
  const { feed, fetched, onChanged } = await feedWithKeys();
  expect(await fetched(good)).toBeNull();
  expect(onChanged).toHaveBeenCalledTimes(1);
  expect(await fetched(withKeys([{ ...jwk, kid: 'two' }]))).toBeNull();
  expect(onChanged).toHaveBeenCalledTimes(2);
  expect(feed.keyText('one')).toBe('[]');
  expect(feed.keyText('two')).toContain('"kid":"two"');
});
