import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { RULES } from '../../src/gateway/callers/method-rules.ts';
import { HAS_HAPROXY, startHaproxy } from './haproxy.ts';

/* What was sent and not answered goes to another instance if it only reads, and never otherwise. */

const AUTHZ = '/workspace.v1.AuthzService/';
const QUERY = '/gatehouse.v1.QueryService/';
const STREAM = '/gatehouse.v1.TupleService/StreamTuples';
const EXPORT = '/v1/tuples';
const PATHS = [...RULES.keys(), EXPORT, '/v1/tuples:import'];

/** Of the services of decisions and of what streams tuples. */
function isSafeRead(path: string): boolean {
  if (path === EXPORT || path === STREAM) return true;
  const needs = RULES.get(path)?.needs ?? [];
  const isOfDecisions = path.startsWith(AUTHZ) || path.startsWith(QUERY);
  return (
    isOfDecisions && needs.length > 0 && needs.every((one) => one === 'read' || one === 'export')
  );
}

/** The paths that a backend takes for reads, by the words of its `acl is_read` lines. */
function readsOf(backend: string): readonly string[] {
  const acls = [...backend.matchAll(/^ {2}acl is_read (\S+) (.+)$/gm)];
  return PATHS.filter((path) =>
    acls.some(([, how, words = '']) =>
      words.split(' ').some((word) => (how === 'path_beg' ? path.startsWith(word) : path === word)),
    ),
  );
}

test.each(['instances_h1', 'instances_h2'])(
  '%s repeats every safe read, and nothing else',
  (name) => {
    const [, backend = ''] = readFileSync('deploy/haproxy.cfg', 'utf8').split(
      `\nbackend ${name}\n`,
    );
    const [own = ''] = backend.split(/^backend /m);
    expect(own).toContain('http-request disable-l7-retry if !is_read');
    expect(readsOf(own).toSorted()).toEqual(PATHS.filter(isSafeRead).toSorted());
    expect(readsOf(own).length).toBeGreaterThan(15);
  },
);

/** An instance that closes the connection on what nobody has closed it on before, and answers the rest. */
async function forgetfulInstance(seen: Set<string>): Promise<number> {
  const server = createServer((incoming, answer) => {
    const id = String(incoming.headers['x-id'] ?? '');
    if (id === '' || seen.has(id)) return void answer.end('answered');
    seen.add(id);
    incoming.resume().once('end', () => incoming.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function statusOf(port: number, path: string, id: string): Promise<number> {
  const method = path === EXPORT ? 'GET' : 'POST';
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, method, path, headers: { 'x-id': id }, agent: false },
      (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0));
      },
    );
    sent.once('error', reject).end(method === 'POST' ? '{}' : undefined);
  });
}

test.skipIf(!HAS_HAPROXY)(
  'haproxy (Debian package haproxy) sends a read again that got no answer',
  async () => {
    const seen = new Set<string>();
    const ports = [];
    for (let n = 0; n < 3; n++) ports.push(await forgetfulInstance(seen));
    const { port, stop } = await startHaproxy(ports);
    onTestFinished(stop);
    for (const path of PATHS) {
      expect([path, await statusOf(port, path, path)]).toEqual([
        path,
        isSafeRead(path) ? 200 : 502,
      ]);
    }
  },
);
