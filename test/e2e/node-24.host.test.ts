import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { SOURCE_CACHE } from '../support/child-service.ts';
import { findNode24 } from '../support/node-24.ts';
import { call, startService } from '../support/service.ts';
import { inLong, inShort } from '../support/test-length.ts';

/*
 * Node.js 24, for which the packed uWebSockets.js has no binary: node:http serves HTTP/1.1 there. The tests of the core pass on it too. Left out are those about
 * uWebSockets.js, which are skipped there, and the runner's, some of which install another Node.js 24 themselves.
 */
const node24 = findNode24();
const MINUTES = 60_000;

type Outcome = {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
};

/** Runs the short tests of `projects` whose paths have one of `parts` with Node.js 24. Returns how many passed, and the names of those that did not. */
async function passedOn24(
  projects: readonly string[],
  parts: readonly string[],
): Promise<{ readonly passed: number; readonly failed: readonly string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'node-24-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'outcome.json');
  const args = ['run', ...projects.flatMap((one) => ['--project', one]), ...parts];
  const child = spawn(
    node24 ?? '',
    ['node_modules/vitest/vitest.mjs', ...args, '--reporter', 'json', '--outputFile', file],
    {
      // None of the variables that this run has of vitest.
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TEST_LENGTH: 'short' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)));
  }
  const [code] = (await once(child, 'close')) as [number];
  const { numPassedTests, testResults } = JSON.parse(readFileSync(file, 'utf8')) as Outcome;
  const failed = testResults.flatMap(({ name, message, assertionResults }) => [
    ...(message === '' ? [] : [`${name}: ${message}`]),
    ...assertionResults.filter(({ status }) => status === 'failed').map((one) => one.fullName),
  ]);
  if (code !== 0 && failed.length === 0) failed.push(`exit code ${code}: ${output}`);
  return { passed: numPassedTests, failed };
}

describe.skipIf(node24 === undefined)('on Node.js 24', () => {
  inShort(test)('the service says that node:http serves, counts it, and answers', async () => {
    const service = await startService({
      postgres: 'shared',
      launcher: { command: [node24 ?? '', '--import', SOURCE_CACHE, 'src/main.ts'] },
    });
    onTestFinished(() => service.stop().then(() => undefined));
    const told = service.log.filter(({ msg }) => msg === 'http1_on_node');
    expect(told.length).toBeGreaterThan(0);
    expect(told[0]).toMatchObject({ level: 'warn' });
    expect(told[0]?.['detail']).toMatch(
      /^uWebSockets\.js does not load on \S+ \S+, Node\.js v24\.\S+ \(ABI 137\): Cannot find module/,
    );

    const user = { user_id: 'ann' };
    const object = { namespace: 'resource', object_id: 'a', relation: 'viewer' };
    const update = { op: 'OP_INSERT', tuple: { ...object, subject: user } };
    const written = await call(service, 'AuthzService/WriteRelationTuples', { updates: [update] });
    expect(written.status).toBe(200);
    const asked = async (subject: string): Promise<unknown> =>
      (await call(service, 'AuthzService/Check', { ...object, subject_user_id: subject })).body;
    expect([await asked('ann'), await asked('ben')]).toEqual([
      { allowed: true },
      { allowed: false },
    ]);
    const overGrpc = createClient(AuthzService, createGrpcTransport({ baseUrl: service.baseUrl }));
    const headers = { authorization: `Bearer ${service.token}` };
    const query = { namespace: 'resource', objectId: 'a', relation: 'viewer' };
    const { allowed } = await overGrpc.check({ ...query, subjectUserId: 'ann' }, { headers });
    expect(allowed).toBe(true);

    const metrics = await (await fetch(`${service.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^gatehouse_http1_connections\{parser="uws"\} 0$/m);
    expect(metrics).toMatch(/^gatehouse_http1_connections\{parser="node"\} [1-9]/m);
    expect(await service.stop()).toBe(0);
  });

  inShort(test)('decisions and the contract over HTTP hold', async () => {
    const { passed, failed } = await passedOn24(
      ['unit', 'host'],
      ['test/engine/engine-equals', 'test/http/contract'],
    );
    expect(failed).toEqual([]);
    expect(passed).toBeGreaterThan(70);
  });

  inLong(test)('all that only computes passes', { timeout: 20 * MINUTES }, async () => {
    const { passed, failed } = await passedOn24(['unit'], []);
    expect(failed).toEqual([]);
    expect(passed).toBeGreaterThan(4_500);
  });

  inLong(test)('all that needs a database passes', { timeout: 30 * MINUTES }, async () => {
    const { passed, failed } = await passedOn24(['pg'], []);
    expect(failed).toEqual([]);
    expect(passed).toBeGreaterThan(2_000);
  });

  inLong(test)('the listener and the gateway pass', { timeout: 20 * MINUTES }, async () => {
    const { passed, failed } = await passedOn24(
      ['host'],
      ['test/http/', 'test/gateway/', 'test/e2e/service.host', 'test/faults/kill-service'],
    );
    expect(failed).toEqual([]);
    expect(passed).toBeGreaterThan(500);
  });
});
