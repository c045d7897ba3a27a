import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packClient } from '../../scripts/pack/pack-client.ts';
import { folderForPackages, installPackage, lend } from '../support/installed-package.ts';
import { type Service, startService } from '../support/service.ts';

/* The package as its user has it: packed, installed into an empty folder without a network, and its examples run there. */

const EXAMPLES = 'clients/typescript/examples';
const FRAMEWORKS = ['express', 'fastify', 'hono', 'nestjs'] as const;
const running: ChildProcess[] = [];
const packed = folderForPackages();
let folder: string;
let service: Service;

beforeAll(async () => {
  packClient(packed);
  folder = await installPackage(join(packed, 'gatehouse-client-0.1.0.tgz'));
  // The service is not the subject here.
  service = await startService({ env: { GATEWAY_WORKERS: '1', DEBUG_ASSERTIONS: '' } });
}, 180_000);
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  for (const path of [packed, folder]) rmSync(path, { recursive: true, force: true });
  expect(await service.stop()).toBe(0);
});

const env = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  GATEHOUSE_URL: service.baseUrl,
  GATEHOUSE_TOKEN: service.token,
});

/** Copies an example to the user's folder. */
function example(name: string): string {
  const path = join(folder, `${name}.mjs`);
  copyFileSync(join(EXAMPLES, `${name}.mjs`), path);
  return path;
}

/** Starts an example that serves, and returns the port that it prints. */
async function serve(name: string): Promise<string> {
  const child = spawn(process.execPath, [example(name)], {
    cwd: folder,
    env: env(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return line.toString().trim();
}

test('the first example prints what is granted', () => {
  const printed = execFileSync(process.execPath, [example('check')], {
    cwd: folder,
    env: env(),
    encoding: 'utf8',
  });
  expect(printed.trim().split('\n')).toEqual(['true', 'false']);
});

test('no file of it is TypeScript but declarations, and every entry can be loaded', () => {
  lend(folder, '@grpc/grpc-js', '@connectrpc/connect-node');
  const installed = join(folder, 'node_modules/@gatehouse/client');
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
  expect(files.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
  const entries = ['', '/node', '/express', '/fastify', '/hono', '/nestjs', '/connect', '/grpc'];
  const script = entries.map((entry) => `await import('@gatehouse/client${entry}');`).join('\n');
  writeFileSync(join(folder, 'load.mjs'), script);
  execFileSync(process.execPath, ['load.mjs'], { cwd: folder });
});

test('its types are found by a compiler', () => {
  const source = `
import { GatehouseClient } from '@gatehouse/client';
type Drive = { folder: 'owner' | 'viewer' };
const drive = new GatehouseClient<Drive>({ baseUrl: '' });
export const right = drive.check({ namespace: 'folder', objectId: '1', relation: 'owner', subject: 'a' });
// @ts-expect-error A misspelt relation does not compile.
export const wrong = drive.check({ namespace: 'folder', objectId: '1', relation: 'ownr', subject: 'a' });
`;
  writeFileSync(join(folder, 'typed.mts'), source);
  const words = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', 'typed.mts'];
  const tsc = resolve('node_modules/.bin/tsc');
  expect(() => execFileSync(tsc, words, { cwd: folder, encoding: 'utf8' })).not.toThrow();
});

describe.each(FRAMEWORKS)('%s', (name) => {
  test('lets viewers read, others not, and a browser see what it has shared', async () => {
    if (name === 'nestjs')
      lend(
        folder,
        '@nestjs/common',
        '@nestjs/core',
        '@nestjs/platform-fastify',
        'reflect-metadata',
      );
    else lend(folder, name, ...(name === 'hono' ? ['@hono/node-server'] : []));
    const base = `http://127.0.0.1:${await serve(name)}/documents/${name}`;
    const read = (headers: Record<string, string>): Promise<Response> => fetch(base, { headers });
    expect((await read({})).status).toBe(401);
    const denied = await read({ 'x-user': 'ann' });
    expect(denied.status).toBe(403);
    expect(JSON.stringify(await denied.json())).toContain('not allowed');
    const shared = await fetch(`${base}/viewers/ann`, { method: 'POST' });
    expect(shared.status).toBe(204);
    const cookie = shared.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(cookie).toMatch(/^gatehouse_session=~~[\w-]{40}$/);
    expect(shared.headers.get('set-cookie')).toContain('HttpOnly');
    const allowed = await read({ 'x-user': 'ann', cookie });
    expect([allowed.status, await allowed.json()]).toEqual([200, { document: name }]);
    // Nobody's cookie gives a right, or takes one.
    const hostile = await read({
      'x-user': 'ann',
      cookie: `gatehouse_session=~~${'A'.repeat(40)}`,
    });
    expect(hostile.status).toBe(200);
    expect((await read({ 'x-user': 'ben', cookie })).status).toBe(403);
  }, 60_000);
});

test('a gRPC server and a Connect server let through who holds the relation', async () => {
  const [rpc, connect] = [await serve('grpc'), await serve('connect')];
  const call = (user: string): Promise<string> =>
    new Promise((resolveWith) => {
      const metadata = new grpc.Metadata();
      metadata.set('x-user', user);
      const client = new grpc.Client(`127.0.0.1:${rpc}`, grpc.credentials.createInsecure());
      client.makeUnaryRequest(
        '/documents.Documents/plan',
        (value: string) => Buffer.from(value),
        (bytes) => bytes.toString(),
        'you',
        metadata,
        (error, answer) => {
          client.close();
          resolveWith(error === null ? (answer ?? '') : String(error.code));
        },
      );
    });
  const ask = (user: string): Promise<number> =>
    fetch(`http://127.0.0.1:${connect}/workspace.v1.SeatService/GetSeatUsage`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': user },
      body: '{}',
    }).then(({ status }) => status);
  // The first example has granted `plan` to ann.
  expect([await call('ann'), await call('ben')]).toEqual(['hello you', '7']);
  expect([await ask('ann'), await ask('ben')]).toEqual([200, 403]);
}, 60_000);

test('where the service is away nobody is let through', () => {
  const away = join(folder, 'away.mjs');
  writeFileSync(
    away,
    `import { GatehouseClient } from '@gatehouse/client';
import { gatehouse } from '@gatehouse/client/express';
const client = new GatehouseClient({ baseUrl: 'http://127.0.0.1:9', timeoutMs: 500 });
const guard = gatehouse({ client, user: () => 'ann', needs: () => ({ namespace: 'resource', objectId: 'plan', relation: 'viewer' }) });
const answer = { setHeader() {}, end() { console.log(this.statusCode); } };
guard({ headers: {} }, answer, () => console.log('let through'));
`,
  );
  const printed = execFileSync(process.execPath, [away], { cwd: folder, encoding: 'utf8' });
  expect(printed.trim()).toBe('503');
}, 60_000);
