import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunResult } from '../../load/drive/run-result.ts';
import { runOf } from '../../load/report/page.ts';
import { call, type Service, startService } from '../support/service.ts';
import { loadInProcess, startFake } from './support.ts';

const RUN_TIMEOUT_MS = 120_000;

const PLAN = {
  project: 'load-test',
  tenant: 't1',
  data: { scale: 0.1 },
  deadline_ms: 20_000,
  operations: [
    { kind: 'check', weight: 60 },
    { kind: 'batch_check', weight: 10, items: 20 },
    { kind: 'list_objects', weight: 5 },
    { kind: 'write', weight: 20, tuples: 2 },
    {
      kind: 'request',
      name: 'expand',
      weight: 5,
      path: '/workspace.v1.AuthzService/Expand',
      body: { namespace: 'doc', object_id: 'd0_0', relation: 'viewer' },
    },
  ],
  stages: [
    { name: 'constant', seconds: 1, rate: 80 },
    { name: 'rising', seconds: 1, rate: { from: 40, to: 160 } },
    { name: 'callers', seconds: 0.3, callers: 3 },
  ],
};

let folder = '';
let service: Service;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-drive-'));
  service = await startService({
    postgres: 'shared',
    env: {
      GATEWAY_WORKERS: '1',
      // The service is not the subject here.
      DEBUG_ASSERTIONS: '',
      GATEWAY_RECORD_QUESTIONS_EVERY: '1',
      GATEWAY_RECORD_FILE: at('questions.jsonl'),
    },
  });
  writeFileSync(at('plan.json'), JSON.stringify(PLAN));
  writeFileSync(at('token'), `${service.token}\n`);
  writeFileSync(at('secret'), service.adminSecret);
}, 120_000);

afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const target = (...args: readonly string[]): string[] => [
  '--target',
  service.baseUrl,
  '--token-file',
  at('token'),
  '--admin-secret-file',
  at('secret'),
  ...args,
];
const resultOf = (name: string): RunResult => runOf(readFileSync(at(name), 'utf8'), name);

describe('a run by a file', () => {
  test(
    'asks what the file says, in its shares, compares every answer, and says what came of it',
    async () => {
      const { code, stdout, stderr } = await loadInProcess(
        target(
          '--mix',
          at('plan.json'),
          '--metrics-url',
          service.metricsUrl,
          '--report',
          at('run.html'),
          '--json',
          at('run.json'),
          '--title',
          'A & B <test>',
        ),
      );
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const run = resultOf('run.json');
      expect(run.isWhole).toBe(true);
      expect(run.failures).toEqual([]);
      expect(run.stages.map(({ name }) => name)).toEqual(['constant', 'rising', 'callers']);
      const asked = run.seconds.slice(0, 2).reduce((sum, { offered }) => sum + offered, 0);
      // 80 and 100 are due; callers that begin within the second second ask more.
      expect(asked).toBeGreaterThanOrEqual(178);
      const names = new Set(run.operations.map(({ operation }) => operation));
      expect([...names].toSorted()).toEqual([
        'batch_check',
        'check',
        'expand',
        'list_objects',
        'write',
      ]);
      const answeredOf = (name: string): number =>
        run.operations
          .filter(({ operation }) => operation === name)
          .reduce((sum, { answered }) => sum + answered, 0);
      const all = [...names].reduce((sum, name) => sum + answeredOf(name), 0);
      expect(answeredOf('check') / all).toBeCloseTo(0.6, 1);
      expect(answeredOf('write') / all).toBeCloseTo(0.2, 1);
      expect(run.operations.every(({ wrong }) => wrong === 0)).toBe(true);
      expect(run.server.length).toBeGreaterThan(0);
      expect(run.server.some(({ residentMib = 0 }) => residentMib > 10)).toBe(true);
      // Credentials are nowhere in what is kept.
      for (const name of ['run.json', 'run.html']) {
        const text = readFileSync(at(name), 'utf8');
        expect(text).not.toContain(service.token);
        expect(text).not.toContain(service.adminSecret);
      }
      expect(readFileSync(at('run.html'), 'utf8')).toContain('A &#38; B &#60;test&#62;');
      expect(JSON.parse(stdout)).toMatchObject({ wrong: 0, title: 'A & B <test>' });
      // What it wrote it took back, all but what was under way at the end.
      const tuples = await call(service, 'AuthzService/ReadRelationTuples', {
        project_id: 'load-test',
        tenant_id: 't1',
        filter: { namespace: 'doc', relation: 'viewer', subject_user_id: 'load-writer' },
      }).catch((error: unknown) => String(error));
      expect(JSON.stringify(tuples).split('load-writer').length).toBeLessThan(60);
    },
    RUN_TIMEOUT_MS,
  );

  test(
    'a wrong answer is found, shown and fails it; refusals are counted by code and reason, and a service that goes away ends no run',
    async () => {
      let checks = 0;
      const full = { code: 'resource_exhausted', reason: 'QUEUE_FULL' };
      const url = await startFake((path, server) => {
        if (path.endsWith('/Check')) checks++;
        // Who allows everything allows what the data set denies.
        if (checks <= 20) return { status: 200, body: { allowed: true } };
        if (checks === 30) server.close(() => undefined);
        if (checks > 30) server.closeAllConnections();
        return { status: 429, body: full };
      });
      const operations = [{ kind: 'check' }];
      const stages = [{ seconds: 1, rate: 40 }];
      writeFileSync(at('allowed.json'), JSON.stringify({ ...PLAN, operations, stages }));
      const args = ['--target', url, '--mix', at('allowed.json'), '--json', at('wrong.json')];
      const { code, stderr } = await loadInProcess(args);
      const { failures, operations: asked, seconds } = resultOf('wrong.json');
      expect({ code, wrong: asked[0]?.wrong ?? 0 }).not.toMatchObject({ wrong: 0 });
      expect(code).toBe(1);
      expect(failures[0]).toContain('wrong: {"allowed":true}');
      expect(stderr).toContain('answers were wrong');
      const reasons = new Set(seconds.flatMap(({ refused }) => Object.keys(refused)));
      expect(reasons).toEqual(new Set(['resource_exhausted QUEUE_FULL', 'connection lost']));
    },
    RUN_TIMEOUT_MS,
  );

  test(
    'recorded questions are asked again, in their time',
    async () => {
      // What the first run asked is recorded; the file follows within a second.
      const checks = resultOf('run.json').operations.filter(({ operation: o }) => o === 'check');
      const recorded = checks.reduce((sum, { answered }) => sum + answered, 0);
      const read = (): string => readFileSync(at('questions.jsonl'), 'utf8');
      await expect.poll(() => read().split('\n').length).toBeGreaterThan(recorded);
      const text = read();
      expect(text).not.toContain(service.token);
      expect(text).not.toContain('consistency');
      const lines = text.trim().split('\n');
      const some = lines.slice(1, 31);
      expect(some.every((line) => line.includes('"project_id":"load-test"'))).toBe(true);
      writeFileSync(at('some.jsonl'), `${[lines[0], ...some].join('\n')}\n{"at_ms":1,"proj`);
      const args = [
        '--replay',
        at('some.jsonl'),
        '--speed',
        '0.5',
        '--repeat',
        '2',
        '--generators',
        '2',
      ];
      const { code, stderr } = await loadInProcess(target(...args, '--json', at('replay.json')));
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const run = resultOf('replay.json');
      const asked = run.seconds.reduce((sum, { offered }) => sum + offered, 0);
      expect(asked).toBe(60);
      // At half of the speed.
      const times = some.map((line) => (JSON.parse(line) as { readonly at_ms: number }).at_ms);
      const dueMs = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 0.5;
      expect(dueMs).toBeGreaterThan(0);
      // A window of counts ends with a twentieth of a second at most that is the next one's.
      expect(run.seconds.length).toBeGreaterThan(Math.floor((dueMs - 50) / 1_000));
    },
    RUN_TIMEOUT_MS,
  );
});
