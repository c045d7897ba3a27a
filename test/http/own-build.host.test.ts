import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { http1ParserOption } from '../../src/config/http1-parser-option.ts';
import { createHttpServer, type Http1Parser } from '../../src/http/listener/http-server.ts';
import { LOADS_UWS } from '../support/http1-parsers.ts';
import { call, spawnService, startService } from '../support/service.ts';

/* A build of uWebSockets.js that somebody brings: its checksum, and what becomes of it. */
const folder = mkdtempSync(join(tmpdir(), 'own-build-'));
afterAll(() => rmSync(folder, { recursive: true }));

const { parse } = http1ParserOption('GATEWAY_HTTP1');
const checksumOf = (path: string): string =>
  createHash('sha256').update(readFileSync(path)).digest('hex');
const PACKED = `node_modules/uWebSockets.js/dist/bin/uws_${process.platform}_${process.arch}_127.node`;
const build = join(folder, 'uws.node');
copyFileSync(PACKED, build);
const setting = `sha256:${checksumOf(build)}:${build}`;

async function served(
  http1: Http1Parser,
): Promise<{ readonly counts: string; readonly incidents: readonly string[] }> {
  const incidents: string[] = [];
  const onIncident = (event: string, detail: string): void => {
    incidents.push(`${event}: ${detail}`);
  };
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1, onIncident });
  onTestFinished(() => server.stop(0));
  server.route('GET', '/', (exchange) =>
    exchange.send(200, 'application/json', JSON.stringify(server.http1Counts)),
  );
  const { port } = await server.listen();
  const response = await fetch(`http://127.0.0.1:${port}/`);
  return { counts: await response.text(), incidents };
}

test('the build that a setting names by its checksum serves, where this Node.js loads it', async () => {
  const { counts, incidents } = await served(parse(setting));
  const { modules } = process.versions;
  if (LOADS_UWS) {
    expect([counts, incidents]).toEqual(['{"uws":1,"node":0}', []]);
    return;
  }
  expect(counts).toBe('{"uws":0,"node":1}');
  // Node.js says no more of a build for another version.
  expect(incidents.join()).toContain(`(ABI ${modules}): Module did not self-register: '${build}'`);
});

test.runIf(process.platform === 'linux' && LOADS_UWS)(
  'a service serves with that build, and not with the packed one',
  async () => {
    const service = await startService({ postgres: 'shared', env: { GATEWAY_HTTP1: setting } });
    onTestFinished(() => service.stop().then(() => undefined));
    const loaded = readFileSync(`/proc/${service.pid}/maps`, 'utf8');
    expect(loaded).toContain(build);
    expect(loaded).not.toContain('node_modules/uWebSockets.js');
    const check = {
      namespace: 'resource',
      object_id: 'a',
      relation: 'viewer',
      subject_user_id: 'u',
    };
    expect((await call(service, 'AuthzService/Check', check)).body).toEqual({ allowed: false });
    const metrics = await (await fetch(`${service.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^gatehouse_http1_connections\{parser="uws"\} [1-9]/m);
    expect(service.log.filter(({ msg }) => msg === 'http1_on_node')).toEqual([]);
  },
);

test('a service does not start with a build of another checksum, and names the setting', async () => {
  const env = { GATEWAY_HTTP1: setting.replace(checksumOf(build), '0'.repeat(64)) };
  const child = spawnService(folder, { ...env, DATABASE_URL: 'postgres://127.0.0.1:1/none' });
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  expect(code).toBe(2);
  expect(text).toContain(`GATEWAY_HTTP1: ${build} has SHA-256 ${checksumOf(build)}, not 000`);
});

test('a build that does not load leaves HTTP/1.1 to node:http, and the log says why', async () => {
  const path = join(folder, 'text.node');
  writeFileSync(path, 'no library');
  const { counts, incidents } = await served(parse(`sha256:${checksumOf(path)}:${path}`));
  expect(counts).toBe('{"uws":0,"node":1}');
  expect(incidents).toHaveLength(1);
  expect(incidents[0]).toMatch(/^http1_on_node: uWebSockets\.js does not load on .*text\.node/);
});

test('a build that changes behind the look at the setting is not loaded', async () => {
  const path = join(folder, 'changing.node');
  copyFileSync(PACKED, path);
  const text = `sha256:${checksumOf(path)}:${path}`;
  parse(text);
  appendFileSync(path, 'more');
  const { counts, incidents } = await served(text as `sha256:${string}`);
  expect(counts).toBe('{"uws":0,"node":1}');
  expect(incidents.join()).toContain(`${path} has SHA-256 ${checksumOf(path)} now`);
});

test('a pipe, which would be waited for, and a folder are no builds', () => {
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const path of [pipe, folder]) {
    const text = `sha256:${'0'.repeat(64)}:${path}`;
    expect(() => parse(text)).toThrow(`${path} is no regular file`);
  }
});

test('another checksum is a wrong setting, and names both', () => {
  const other = '0'.repeat(64);
  expect(() => parse(`sha256:${other}:${build}`)).toThrow(
    `${build} has SHA-256 ${checksumOf(build)}, not ${other}`,
  );
});

test.each([
  [`sha256:${'0'.repeat(64)}:/nowhere/uws.node`, '/nowhere/uws.node'],
  [`sha256:${'0'.repeat(64)}:relative/uws.node`, 'an absolute path'],
  [`sha256:abc:${build}`, 'must be one of'],
  [setting.toUpperCase(), 'in small letters'],
  [build, 'must be one of'],
  ['UWS', 'must be one of'],
])('%s is refused', (text, problem) => {
  expect(() => parse(text)).toThrow(problem);
});
