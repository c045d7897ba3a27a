import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { load, run } from './support.ts';

/* Recipes are run as load/README.md says, but for shorter; what is not installed is skipped. */

const RECIPES = 'load/recipes';
const isMissing = (program: string): boolean =>
  spawnSync(program, ['--version']).error !== undefined;
const TOOLS = ['wrk', 'k6', 'ghz', 'oha'] as const;
const isAnyThere = TOOLS.some((tool) => !isMissing(tool));

let service: Service;
let folder = '';

beforeAll(async () => {
  if (!isAnyThere) return;
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-recipes-'));
  service = await startService();
  const mix = JSON.parse(readFileSync('load/mixes/checks.json', 'utf8')) as Record<string, unknown>;
  writeFileSync(
    join(folder, 'mix.json'),
    JSON.stringify({ ...mix, stages: [{ seconds: 1, rate: 10 }] }),
  );
  const { code, stderr } = await load(
    ['--target', service.baseUrl, '--mix', join(folder, 'mix.json')],
    { env: { LOAD_TOKEN: service.token, LOAD_ADMIN_SECRET: service.adminSecret } },
  );
  expect({ code, stderr }).toMatchObject({ code: 0 });
}, 120_000);

afterAll(async () => {
  if (!isAnyThere) return;
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const address = (): string => new URL(service.baseUrl).host;

test('each file is one of its kind, and is named in the readme', () => {
  const readme = readFileSync('load/README.md', 'utf8');
  for (const file of [
    'wrk/check.lua',
    'k6/check.js',
    'k6/check-grpc.js',
    'ghz/check.json',
    'oha/check.json',
  ]) {
    expect(readme).toContain(`load/recipes/${file}`);
    const text = readFileSync(join(RECIPES, file), 'utf8');
    if (file.endsWith('.json')) expect(() => JSON.parse(text) as unknown).not.toThrow();
    if (file.endsWith('.js')) {
      const { status, stderr } = spawnSync(process.execPath, ['--check', join(RECIPES, file)], {
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
  }
});

describe.skipIf(isMissing('wrk'))('wrk (Debian package wrk)', () => {
  test('asks and is answered', async () => {
    const args = [
      '-t1',
      '-c4',
      '-d2s',
      '--latency',
      '-s',
      `${RECIPES}/wrk/check.lua`,
      service.baseUrl,
    ];
    const { stdout, stderr } = await run('wrk', args, { env: { TOKEN: service.token } });
    const line = stdout.split('\n').find((one) => one.startsWith('{'));
    const counts = JSON.parse(line ?? `"${stderr}"`) as Record<string, number>;
    expect(counts).toMatchObject({ not_2xx: 0, lost: 0 });
    expect(counts['requests']).toBeGreaterThan(10);
  }, 120_000);

  test('without a token it is refused, and says so', async () => {
    const args = ['-t1', '-c1', '-d1s', '-s', `${RECIPES}/wrk/check.lua`, service.baseUrl];
    const { stdout } = await run('wrk', args);
    const counts = JSON.parse(/^\{.*$/m.exec(stdout)?.[0] ?? '{}') as Record<string, number>;
    expect(counts['not_2xx']).toBe(counts['requests']);
  }, 120_000);
});

describe.skipIf(isMissing('k6'))('k6 (go.k6.io/k6)', () => {
  const k6 = (file: string, target: string) =>
    run('k6', [
      'run',
      '--quiet',
      '--no-usage-report',
      '-e',
      `TARGET=${target}`,
      '-e',
      `TOKEN=${service.token}`,
      '-e',
      'RATE=20',
      '-e',
      'SECONDS=2',
      '-e',
      'USERS=2',
      `${RECIPES}/k6/${file}`,
    ]);

  test('asks over HTTP and is answered', async () => {
    const { code, stdout, stderr } = await k6('check.js', service.baseUrl);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('is decided');
  }, 120_000);

  test('asks over gRPC and is answered', async () => {
    const { code, stdout, stderr } = await k6('check-grpc.js', address());
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('is decided');
  }, 120_000);
});

describe.skipIf(isMissing('ghz'))('ghz (github.com/bojand/ghz)', () => {
  test('asks over gRPC and is answered', async () => {
    const metadata = JSON.stringify({ authorization: `Bearer ${service.token}` });
    const { code, stdout, stderr } = await run('ghz', [
      '--config',
      `${RECIPES}/ghz/check.json`,
      '--metadata',
      metadata,
      '--duration',
      '2s',
      '--rps',
      '20',
      '--format',
      'json',
      address(),
    ]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const report = JSON.parse(stdout) as {
      count: number;
      statusCodeDistribution: Record<string, number>;
    };
    expect(report.count).toBeGreaterThan(5);
    // Those that are under way at the end it cancels itself.
    expect(
      Object.keys(report.statusCodeDistribution).filter(
        (code2) => !['OK', 'Canceled', 'Unavailable'].includes(code2),
      ),
    ).toEqual([]);
    expect(report.statusCodeDistribution['OK']).toBeGreaterThan(5);
  }, 120_000);
});

describe.skipIf(isMissing('oha'))('oha (crate oha)', () => {
  test.each([[], ['--http2']])(
    'asks and is answered %j',
    async (...extra) => {
      const { code, stdout, stderr } = await run('oha', [
        '-z',
        '2s',
        '-c',
        '2',
        '-q',
        '20',
        '--latency-correction',
        '-m',
        'POST',
        '--no-tui',
        '-T',
        'application/json',
        '-H',
        `Authorization: Bearer ${service.token}`,
        '-D',
        `${RECIPES}/oha/check.json`,
        ...extra,
        '--output-format',
        'json',
        `${service.baseUrl}/workspace.v1.AuthzService/Check`,
      ]);
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const report = JSON.parse(stdout) as { statusCodeDistribution: Record<string, number> };
      expect(Object.keys(report.statusCodeDistribution)).toEqual(['200']);
    },
    60_000,
  );
});
