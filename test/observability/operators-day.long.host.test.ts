/*
 * An operator's day: causes alerts for real on the three services, as `npm run start:all` runs them on one PostgreSQL, and
 * follows what the documents advise by the commands that they give. Rules are evaluated by promtool on what was scraped; the
 * test is skipped where that is not on PATH (Debian package prometheus).
 */
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type TestCluster } from '../support/postgres-cluster.ts';
import { createTcpSwitch, type TcpSwitch } from '../support/tcp-switch.ts';
import { type SamplesLater, startTape } from './alert-tape.ts';
import { ADMIN_SECRET, type AllServices, startAllServices, TOKEN } from './all-services.ts';
import { readAlerts } from './deploy-files.ts';

const MEMBER = { namespace: 'group', relation: 'member' };
const CHAIN = 150;
const DEEP_CHAIN = 400;
const RESTART_SAMPLE_MS = 3_000;

/** What a machine that is busy with tests may fire by itself. */
const BY_LOAD = ['EventLoopDelayed', 'AuthzLatencyHigh', 'AuthzWritesSlow'];

/** Alerts that no test can cause within its time, or not without breaking the machine; promtool's cases show them. */
const NOT_CAUSED: Readonly<Record<string, string>> = {
  ServiceCrashLoop: 'start:all ends with the first service that dies',
  EventLoopDelayed: 'load',
  ScrapeErrors: 'collectors read memory',
  PostgresPoolWaiting: 'load',
  CredentialsDiffer: 'needs two instances',
  AuthzLatencyHigh: 'load',
  AuthzWatermarkLagGrowing: 'load',
  AuthzWorkerRestarts: 'a fault of the program',
  AuthzWorkerQueueGrowing: 'load',
  AuthzWriteQueueGrowing: 'load',
  AuthzWritesSlow: 'load',
  AuthzIndexFull: 'memory',
  AuthzClockUncertain: 'four minutes without PostgreSQL, which tests do not wait for',
  AuthzClockSkewed: 'the clock of the machine',
  AuthzHintsLost: 'other instances',
  AuthzUpkeepStalled: 'an hour',
  AuthzIndexDiffers: 'a fault of the program or the memory',
  AuthzIndexUnchecked: 'a day',
  AuthzRegistrationsLost: 'other instances',
  AuthzCannotWrite: 'other instances, or a start without PostgreSQL',
  AuthzReadIndexFails: 'other instances',
  AuthzRequestsRefused: 'load',
  AuthzKeysFailing: 'a server of keys that goes away for minutes',
  NotifyNotReady: 'a start that hangs',
  NotifyEndpointsDisabled: 'endpoints that fail for days',
  NotifyStreamOrdersLate: 'a store that hangs for a minute, which fails its readiness before',
  NotifyDeliveriesLate: 'load',
  NotifyEventsDropped: 'load',
  NotifyWriteQueueGrowing: 'load',
  RunnerStuck: 'a full disk',
  RunnerEventsDropped: 'load',
  BodyMemoryFull: 'load',
  AuthzPostgresRefuses: 'a full disk, or rights that are taken away: test/faults has them',
  AuthzShardLoadsFail: 'only where a tenant is asked for the first time while PostgreSQL is away',
};
const caused = new Set<string>();

const isFound = spawnSync('promtool', ['--version']).error === undefined;

describe.skipIf(!isFound)('an operator’s day (skipped unless promtool is on PATH)', () => {
  let cluster: TestCluster;
  let way: TcpSwitch;
  let all: AllServices;
  let webhooks: Server;
  let tokenFile: string;
  let dir: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gatehouse-day-'));
    tokenFile = join(dir, 'tokens');
    writeFileSync(tokenFile, TOKEN);
    cluster = await startCluster();
    way = await createTcpSwitch(cluster.target);
    const { host, port, user, password, database } = way.target;
    webhooks = createServer((request, response) => {
      request.resume();
      response.writeHead(500).end();
    });
    webhooks.listen(0, '127.0.0.1');
    await once(webhooks, 'listening');
    all = await startAllServices({
      env: {
        DATABASE_URL: `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`,
        NOTIFY_SERVICE_AUTH_TOKENS: '',
        NOTIFY_SERVICE_AUTH_TOKENS_FILE: tokenFile,
        NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'true',
        NOTIFY_SEND_ATTEMPTS: '1',
        RUNNER_MAX_QUEUED_RUNS: '2',
        RUNNER_MAX_CONCURRENT_RUNS: '1',
        RUNNER_DISK_FLOOR_BYTES: '0',
      },
      files: {
        '.github/workflows/long.yml':
          'on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: sleep 600 }] } }\n',
        '.github/workflows/bad.yml':
          'on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: exit 1 }] } }\n',
      },
    });
    for (const project of [
      { id: 'atlas', name: 'atlas', max_check_reads: 100 },
      { id: 'deep', name: 'deep' },
      { id: 'far', name: 'far', data_region: 'eu-1' },
    ]) {
      await authz('AdminService/CreateProject', project);
    }
    await writeChain('atlas', CHAIN);
    await writeChain('deep', DEEP_CHAIN);
  }, 120_000);

  afterAll(async () => {
    try {
      expect(await all?.stop()).toBe(0);
    } finally {
      webhooks?.close();
      await way?.end();
      await cluster?.remove();
      rmSync(dir, { recursive: true, force: true });
    }
  }, 120_000);

  async function post(
    url: string,
    body: object,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text || '{}') as Record<string, unknown> };
  }

  async function authz(method: string, body: object): Promise<number> {
    const more = { 'x-admin-secret': ADMIN_SECRET };
    return (await post(`${all.authz}/workspace.v1.${method}`, body, more)).status;
  }

  const notify = (method: string, body: object) =>
    post(`${all.notifyInternal}/notify.v1.NotifyService/${method}`, body);

  async function writeChain(projectId: string, length: number): Promise<void> {
    const updates = Array.from({ length }, (_, i) => ({
      op: 'OP_INSERT',
      tuple: {
        ...MEMBER,
        object_id: `g${i}`,
        subject: { set: { ...MEMBER, object_id: `g${i + 1}` } },
      },
    }));
    const body = { project_id: projectId, updates };
    expect(await authz('AuthzService/WriteRelationTuples', body)).toBe(200);
  }

  const check = (projectId: string, objectId: string): Promise<number> =>
    authz('AuthzService/Check', {
      project_id: projectId,
      ...MEMBER,
      object_id: objectId,
      subject_user_id: 'nobody',
    });

  /** What users do all the time. */
  async function work(rounds: number): Promise<void> {
    for (let i = 0; i < rounds; i++) {
      await check('atlas', `g${CHAIN}`);
      const live = { tenant_id: 't', user_id: 'u', channels: ['CHANNEL_LIVE'], title: 'hello' };
      await notify('Notify', live);
      await sleep(200);
    }
  }

  /** Records a phase, in which `cause` is done after some quiet samples; the alerts that it fired. */
  async function phase(
    samples: number,
    cause: (later: SamplesLater) => Promise<void>,
    everyMs?: number,
  ): Promise<readonly string[]> {
    const tape = startTape(all.metrics, everyMs);
    await tape.record(4);
    await tape.record(samples, cause);
    const fired = (await tape.fired()).filter((alert) => !BY_LOAD.includes(alert));
    for (const alert of fired) caused.add(alert);
    return fired;
  }

  /**
   * A command of a document, with these settings; what it printed. Not in this thread, on which the way to PostgreSQL is.
   * Errors: throws where it ends with an error.
   */
  async function run(command: string): Promise<string> {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      env: {
        ...process.env,
        GATEWAY_CONNECT_PORT: new URL(all.authz).port,
        GATEWAY_HOST: '127.0.0.1',
        GATEWAY_SERVICE_AUTH_TOKENS: TOKEN,
        GATEWAY_ADMIN_API_SECRET: ADMIN_SECRET,
        SERVICE_TOKEN: TOKEN,
      },
    });
    return stdout;
  }

  /** The shell block of docs/operations.md that holds `text`. */
  function documented(text: string): string {
    const blocks = readFileSync('docs/operations.md', 'utf8').matchAll(/```sh\n([^]*?)```/g);
    const block = [...blocks].map(([, code = '']) => code).find((code) => code.includes(text));
    if (block === undefined) throw new Error(`no block with ${text}`);
    return block;
  }

  test('a quiet hour fires nothing', async () => {
    expect(await phase(30, () => work(40))).toEqual([]);
  }, 120_000);

  test('one error of a caller, and one of a run, fire nothing', async () => {
    const fired = await phase(24, async () => {
      await check('atlas', 'g0');
      await check('deep', 'g0');
      await check('far', 'g0');
      await work(20);
    });
    expect(fired).toEqual([]);
  }, 120_000);

  test('a planned restart of PostgreSQL fires nothing', async () => {
    const restart = async (): Promise<void> => {
      const working = work(40);
      way.close();
      await cluster.stop();
      await cluster.start();
      way.point(cluster.target);
      await working;
    };
    // The whole of it takes as long as two or three samples, as one of 45 s does.
    const fired = await phase(16, restart, RESTART_SAMPLE_MS);
    expect(fired).toEqual([]);
    for (const name of ['authz', 'notify'] as const) {
      await expect
        .poll(() => all.logOf(name).filter(({ msg }) => msg === 'listen_connection_back').length)
        .toBe(1);
      const lost = all.logOf(name).filter(({ msg }) => msg === 'listen_connection_lost');
      expect(lost).toHaveLength(1);
    }
  }, 120_000);

  test('AuthzBudgetExhausted: three commands lead to the right budget', async () => {
    const fired = await phase(8, async () => {
      for (let i = 0; i < 12; i++) expect(await check('atlas', 'g0')).toBe(429);
    });
    expect(fired).toEqual(['AuthzBudgetExhausted']);
    const commands = documented('npm run budget')
      .split('\n')
      .map((line) => line.replace(/\s*#.*/, ''))
      .map((line) => line.replace(/npm run budget( --)?/, 'node scripts/gatehouse.mjs budget'))
      .filter((line) => line !== '');
    expect(commands).toHaveLength(3);
    const [who = '', what = '', set = ''] = commands;
    expect(await run(who)).toMatch(/^ +\d+ +\d+ +\d+ +100 +atlas$/m);
    const advice = await run(what);
    const [, budget = ''] = /^suggestion: raise (\d+) /m.exec(advice) ?? [];
    expect(Number(budget)).toBeGreaterThan(CHAIN);
    await run(set.replace('50000', budget));
    expect(await check('atlas', 'g0')).toBe(200);
    expect(await run(what)).toMatch(/^suggestion: keep /m);
    const line = all.logOf('authz').find(({ msg }) => msg === 'budget_exhausted');
    expect(line).toMatchObject({ project: 'atlas', relation: 'group#member', limit: 100 });
  }, 120_000);

  test('AuthzDepthCut and AuthzRegionRefused', async () => {
    const fired = await phase(8, async () => {
      for (let i = 0; i < 10; i++) {
        expect(await check('deep', 'g0')).toBe(200);
        expect(await check('far', 'g0')).toBe(412);
      }
    });
    expect(fired).toEqual(['AuthzDepthCut', 'AuthzRegionRefused']);
    // "AdminService answers in every region, so a wrong pin can be taken back from where it was set."
    const admin = documented('admin() {').replaceAll('localhost:8080', new URL(all.authz).host);
    const unpin = documented('clear_data_region')
      .split('\n')
      .find((line) => line.includes('clear'));
    await run(`${admin}\n${String(unpin).replaceAll('atlas', 'far')}`);
    expect(await check('far', 'g0')).toBe(200);
  }, 120_000);

  test('PostgreSQL is away', async () => {
    const fired = await phase(40, async (later) => {
      way.close();
      let isOver = false;
      const over = later(38).then(() => (isOver = true));
      while (!isOver) await Promise.allSettled([check('atlas', `g${CHAIN}`), work(1), sleep(200)]);
      await over;
    });
    expect(fired).toEqual(
      expect.arrayContaining([
        'AuthzFeedUnstable',
        'AuthzNotReady',
        'NotifyListenUnstable',
        'NotifyRequestErrors',
        'NotifyStoreErrors',
      ]),
    );
    way.point(cluster.target);
    // "listen_connection_back when it is over."
    for (const name of ['authz', 'notify'] as const) {
      await expect
        .poll(() => all.logOf(name).filter(({ msg }) => msg === 'listen_connection_back').length, {
          timeout: 20_000,
        })
        .toBe(2);
    }
    await expect.poll(() => check('atlas', `g${CHAIN}`), { timeout: 20_000 }).toBe(200);
    expect(await phase(24, () => work(20))).toEqual([]);
  }, 120_000);

  test('NotifyDeadLetters and NotifySendsFail: the endpoint is deleted', async () => {
    const { port } = webhooks.address() as AddressInfo;
    const endpoint = {
      id: 'broken',
      tenant_id: 't',
      user_id: 'broken',
      channel: 'CHANNEL_WEBHOOK',
      address: `http://127.0.0.1:${port}/broken`,
    };
    const put = { endpoint, signing_secret: 'operators-day-signing-secret' };
    expect((await notify('PutEndpoint', put)).status).toBe(200);
    const send = { tenant_id: 't', user_id: 'broken', channels: ['CHANNEL_WEBHOOK'], title: 'x' };
    const fired = await phase(52, async (later) => {
      for (let i = 0; i < 25; i++) {
        await notify('Notify', send);
        await later(2);
      }
    });
    expect(fired).toEqual(['NotifyDeadLetters', 'NotifySendsFail']);
    const line = all.logOf('notify').find(({ msg }) => msg === 'retry_failed');
    expect(line).toMatchObject({ connection_id: 'broken' });
    const gone = { tenant_id: 't', id: String(line?.['connection_id']) };
    expect((await notify('DeleteEndpoint', gone)).status).toBe(200);
  }, 120_000);

  test('CredentialFileFailing: the file is written again', async () => {
    const fired = await phase(8, async (later) => {
      writeFileSync(tokenFile, '');
      await later(9);
      // What was in force still is.
      expect((await notify('ListEndpoints', { tenant_id: 't' })).status).toBe(200);
    });
    expect(fired).toEqual(['CredentialFileFailing']);
    writeFileSync(tokenFile, TOKEN);
    await expect
      .poll(() => all.logOf('notify').some(({ msg }) => msg === 'credential_file_recovered'))
      .toBe(true);
  }, 120_000);

  test('RunnerQueueFull and RunnerRunsFail: what nobody needs is cancelled', async () => {
    const runs = `${all.runner}/api/runs`;
    const start = (workflow: string) => post(runs, { workflow, sandbox: { strategy: 'none' } });
    const failing = await phase(50, async () => {
      for (let i = 0; i < 6; i++) {
        await expect
          .poll(async () => (await start('bad')).status, { timeout: 20_000, interval: 250 })
          .toBe(201);
        await sleep(800);
      }
    });
    expect(failing).toEqual(['RunnerRunsFail']);
    const ids: string[] = [];
    const full = await phase(10, async () => {
      for (let i = 0; i < 12; i++) {
        const { status, body } = await start('long');
        if (status === 201)
          ids.push(String((body['run'] as { id: string } | undefined)?.id ?? body['id']));
        else expect(status).toBe(429);
      }
    });
    expect(full).toContain('RunnerQueueFull');
    expect(ids.length).toBe(3);
    for (const id of ids.toReversed()) {
      expect((await post(`${runs}/${id}/cancel`, {})).status).toBeLessThan(300);
    }
    await expect.poll(async () => (await start('bad')).status, { timeout: 20_000 }).toBe(201);
  }, 150_000);

  test('ServiceDown', async () => {
    const pid = await all.runnerPid();
    const fired = await phase(8, async (later) => {
      process.kill(pid, 'SIGSTOP');
      await later(7);
      process.kill(pid, 'SIGCONT');
    });
    expect(fired).toContain('ServiceDown');
    await expect.poll(async () => (await fetch(`${all.runner}/health`)).status).toBe(200);
  }, 120_000);

  test('each alert was caused, or is among those that say why not', () => {
    const known = [...caused, ...Object.keys(NOT_CAUSED)];
    const missing = readAlerts()
      .map(({ alert }) => alert)
      .filter((alert) => !known.includes(alert));
    expect(missing).toEqual([]);
  });
});
