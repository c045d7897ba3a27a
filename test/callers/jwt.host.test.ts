import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { call, type Service, startService } from '../support/service.ts';
import { byLength, inShort } from '../support/test-length.ts';

/* JWTs as credentials: what counts, what does not, and where keys come from. */

const ISSUER = 'https://issuer.example';
/** Its keys cannot be fetched: their place says that they are elsewhere. */
const LOST_ISSUER = 'https://lost.example';
const fixture = (name: string): string => join(import.meta.dirname, 'fixtures', name);
const folder = mkdtempSync(join(tmpdir(), 'jwt-'));
const file = join(folder, 'callers.json');
const scope = {
  projects: ['default'],
  tenants: ['acme'],
  services: '*',
  methods: ['read', 'export'],
};

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
type Keys = { readonly pair: Pair; readonly jwk: JWK };
type Answer = {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
};

const MOVED: Answer = { status: 302, headers: { location: '/elsewhere' }, body: '' };

let keys: Keys;
let second: Keys;
let stranger: Keys;
let rsa: Keys;
let server: Server;
let answer: Answer;
const asked: string[] = [];
let service: Service;

async function keysOf(kid: string, algorithm = 'ES256'): Promise<Keys> {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  return { pair, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg: algorithm, use: 'sig' } };
}

const serving = (...some: readonly Keys[]): Answer => ({
  status: 200,
  body: JSON.stringify({ keys: some.map(({ jwk }) => jwk) }),
});

beforeAll(async () => {
  keys = await keysOf('one');
  second = await keysOf('two');
  stranger = await keysOf('one');
  rsa = await keysOf('rsa', 'RS256');
  answer = serving(keys, rsa);
  server = createServer(
    {
      cert: readFileSync(fixture('loopback-cert.pem')),
      key: readFileSync(fixture('loopback-key.pem')),
    },
    (request, response) => {
      asked.push(request.url ?? '');
      const { status, headers, body } = request.url === '/lost' ? MOVED : answer;
      response.writeHead(status, headers);
      response.end(body);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const issuer = {
    issuer: ISSUER,
    audience: 'gatehouse',
    algorithms: ['ES256'],
    jwks_url: `https://127.0.0.1:${port}/keys`,
  };
  const lost = { ...issuer, issuer: LOST_ISSUER, jwks_url: `https://127.0.0.1:${port}/lost` };
  const caller = { name: 'svc', jwt: [{ issuer: ISSUER, subject: 'svc-1' }], scopes: [scope] };
  const document = { callers: [caller], jwt_issuers: [issuer, lost] };
  writeFileSync(file, JSON.stringify(document));
  service = await startService({
    postgres: 'shared',
    env: {
      GATEWAY_SERVICE_AUTH_TOKENS: '',
      GATEWAY_CALLERS_FILE: file,
      GATEWAY_WATCH_STREAMS: '10',
      NODE_EXTRA_CA_CERTS: fixture('loopback-cert.pem'),
    },
  });
}, 120_000);
afterAll(async () => {
  expect(await service.stop()).toBe(0);
  server.close();
  rmSync(folder, { recursive: true });
});

type Claims = {
  readonly iss?: string | undefined;
  readonly aud?: string | undefined;
  readonly sub?: string | undefined;
  readonly exp?: number | undefined;
  readonly nbf?: number;
};

const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1_000) + seconds;

async function token(
  claims: Claims = {},
  by: Keys = keys,
  header: Partial<JWTHeaderParameters> | { kid: undefined } = {},
): Promise<string> {
  const all = { iss: ISSUER, aud: 'gatehouse', sub: 'svc-1', exp: inSeconds(300), ...claims };
  const set = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const { kid = '', alg = 'ES256' } = by.jwk;
  const { kid: name, ...rest } = { alg, kid, ...header };
  return await new SignJWT(set)
    .setProtectedHeader(name === undefined ? rest : { ...rest, kid: name })
    .sign(by.pair.privateKey);
}

const question = {
  tenantId: 'acme',
  namespace: 'resource',
  objectId: 'o',
  relation: 'viewer',
  subjectUserId: 'u',
};

async function check(bearer: string, tenantId = 'acme'): Promise<number> {
  const { status } = await call({ ...service, token: bearer }, 'AuthzService/Check', {
    ...question,
    tenantId,
  });
  return status;
}

async function soon(what: () => Promise<void>): Promise<void> {
  await vi.waitFor(what, { timeout: 30_000, interval: 100 });
}

async function metrics(): Promise<string> {
  return await (await fetch(`${service.metricsUrl}/metrics`)).text();
}

inShort(test)(
  'a JWT is its caller: on the general path first, on the hot path then, and over gRPC',
  async () => {
    const good = await token();
    await soon(async () => expect(await check(good)).toBe(200));
    expect([await check(good), await check(good, 'other')]).toEqual([200, 403]);
    const fresh = await token({ exp: inSeconds(301) });
    const session = connect(service.baseUrl);
    const message = toBinary(CheckRequestSchema, create(CheckRequestSchema, question));
    for (const bearer of [fresh, fresh, 'x.y.z']) {
      const headers = {
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: `Bearer ${bearer}`,
      };
      const { fields } = await callHttp2(session, '/workspace.v1.AuthzService/Check', headers, [
        envelope(0, message),
      ]);
      expect(fields['grpc-status']).toBe(bearer === fresh ? '0' : '16');
    }
    session.close();
    expect(await metrics()).toMatch(/gatehouse_caller_calls_total\{caller="svc"\} [1-9]/);
  },
);

inShort(test)(
  'what lacks a claim, is of others, or is signed in another way does not count',
  async () => {
    const unsigned = (alg: string): string =>
      [
        { alg, kid: 'one' },
        { iss: ISSUER, aud: 'gatehouse', sub: 'svc-1', exp: inSeconds(300) },
      ]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
    const secret = Buffer.from(JSON.stringify(keys.jwk));
    const good = await token({ exp: inSeconds(299) });
    const altered = `${good.slice(0, -8)}${good.endsWith('AAAAAAAA') ? 'BBBBBBBB' : 'AAAAAAAA'}`;
    const place = `https://127.0.0.1:${(server.address() as AddressInfo).port}/stranger`;
    const wrong: Readonly<Record<string, string>> = {
      'another issuer': await token({ iss: 'https://other.example' }),
      'no issuer': await token({ iss: undefined }),
      'another audience': await token({ aud: 'others' }),
      'no audience': await token({ aud: undefined }),
      'no expiry': await token({ exp: undefined }),
      'an expiry that has passed': await token({ exp: inSeconds(-1) }),
      'a begin that lies ahead': await token({ nbf: inSeconds(60) }),
      'no subject': await token({ sub: undefined }),
      'a subject of nobody': await token({ sub: 'svc-2' }),
      'an algorithm that was not given': await token({}, rsa),
      'the key of a stranger': await token({}, stranger),
      'a stranger with the place of the keys': await token({}, stranger, { jku: place }),
      'a stranger with the place of a certificate': await token({}, stranger, { x5u: place }),
      'a stranger with the key itself': await token({}, stranger, { jwk: stranger.jwk }),
      'an altered signature': altered,
      'no signature': `${unsigned('none')}.`,
      'a signature of nothing': `${unsigned('none')}.AAAA`,
      'the public key as a secret': await new SignJWT({
        iss: ISSUER,
        aud: 'gatehouse',
        sub: 'svc-1',
      })
        .setProtectedHeader({ alg: 'HS256', kid: 'one' })
        .setExpirationTime(inSeconds(300))
        .sign(secret),
    };
    const answers: Record<string, number> = {};
    for (const [what, bearer] of Object.entries(wrong)) answers[what] = await check(bearer);
    expect(answers).toEqual(Object.fromEntries(Object.keys(wrong).map((what) => [what, 401])));
    expect(asked.filter((url) => url !== '/keys' && url !== '/lost')).toEqual([]);
  },
);

inShort(test)(
  'streams end when their JWT expires (C4)',
  async () => {
    const bearer = await token({ exp: inSeconds(4) });
    const headers = { authorization: `Bearer ${bearer}` };
    const events = await fetch(`${service.baseUrl}/v1/watch?tenant_id=acme`, { headers });
    expect(events.status).toBe(200);
    expect(await events.text()).toContain('event: error\ndata: {"code":"unauthenticated"');
    expect(await check(bearer)).toBe(401);
  },
  120_000,
);

inShort(test)(
  'keys whose place says that they are elsewhere are not fetched from there',
  async () => {
    const failing = `gatehouse_jwks_failing{issuer="${LOST_ISSUER}"} 1`;
    await soon(async () => expect(await metrics()).toContain(failing));
    // Nobody knows whether it counts.
    expect(await check(await token({ iss: LOST_ISSUER }))).toBe(503);
    expect(asked).not.toContain('/elsewhere');
  },
);

/** None of these is taken for keys. Ten seconds each: jwks-feed.host.test.ts shows more of them, without a service. */
const NO_KEYS: readonly Answer[] = byLength(
  [],
  [
    MOVED,
    { status: 200, body: `{"keys":[],"a":"${'x'.repeat(300_000)}"}` },
    { status: 200, body: '{"keys":[]}' },
  ],
);

test('keys are followed in the background, and those that are gone take their JWTs along (C4)', async () => {
  const old = await token({ exp: inSeconds(600) });
  const next = await token({ exp: inSeconds(600) }, second);
  // Found by its algorithm, as there is one such key.
  const nameless = await token({ exp: inSeconds(600) }, keys, { kid: undefined });
  expect([await check(old), await check(nameless)]).toEqual([200, 200]);
  const failing = `gatehouse_jwks_failing{issuer="${ISSUER}"} 1`;
  for (const bad of NO_KEYS) {
    const before = asked.length;
    answer = bad;
    // A key that is not known makes it look; not more often than every ten seconds.
    await soon(async () => {
      await check(next);
      expect(asked.length).toBeGreaterThan(before);
    });
    await soon(async () => expect(await metrics()).toContain(failing));
    expect([await check(old), asked.includes('/elsewhere')]).toEqual([200, false]);
  }
  answer = serving(second);
  await soon(async () => expect(await check(next)).toBe(200));
  expect([await check(old), await check(nameless)]).toEqual([401, 401]);
  expect(await metrics()).toContain(`gatehouse_jwks_failing{issuer="${ISSUER}"} 0`);
}, 180_000);
