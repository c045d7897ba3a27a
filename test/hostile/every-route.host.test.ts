import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SERVICES } from '../../src/gateway/call-handlers.ts';
import { routesOf } from '../../src/runner/wiring/runner-routes.ts';
import { SERVICE_TOKEN, startNotify } from '../notify/support/notify-process.ts';
import type { LogLine } from '../support/child-service.ts';
import { startProcess } from '../support/runner-process.ts';
import { startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import {
  BODIES,
  HEADS,
  type HostileRequest,
  QUERIES,
  type RestTarget,
  sendHostile,
} from './rest-requests.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

/*
 * Hostile queries, heads and bodies to every route of the three services that is no method of an RPC. The routes are those that the
 * services have, so that a new one is attacked, too. HOSTILE_ALL=1 sends everything to each, else each gets a sample of it, by a seed
 * that is printed; HOSTILE_SEED=n repeats one.
 */
const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000);
const IS_ALL = process.env['HOSTILE_ALL'] === '1';
/** Of each kind, for each method and pattern. */
const SAMPLE_EACH = byLength(1, 4);
const AT_ONCE = 4;
const START_MS = 180_000;
const GROWN_MAX = 256 * 1_048_576;
const NODE_OPTIONS = `--import=${new URL('tell-routes.ts', import.meta.url).href}`;
const METHODS = new Set(
  SERVICES.flatMap(({ methods }) => methods).map(
    ({ parent, name }) => `/${parent.typeName}/${name}`,
  ),
);
/** What a parameter of a path is; the last is refused by who decodes it. */
const VALUES = [
  'a',
  '%2e%2e%2f',
  '..',
  '%00',
  'x'.repeat(4_000),
  '%ff%fe',
  '%zz',
  '-1',
  '__proto__',
];

type Attacked = {
  readonly pid: number;
  readonly healthUrl: string;
  readonly targets: readonly RestTarget[];
  readonly stop: () => Promise<unknown>;
};

/** Paths that a fallback tells apart by itself, by the constants that name them. */
function pathsNamedIn(folder: string): readonly string[] {
  const root = join(import.meta.dirname, '..', '..', folder);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!test)\.ts$/.test(name),
  );
  return files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/PATH = '(\/[^']+)'/g)].map(
      ([, path = '']) => path,
    ),
  );
}

/** Each route with each value of its parameters in turn. */
function targetsOf(
  url: string,
  routes: readonly (readonly [string, string])[],
  credential: readonly string[],
): readonly RestTarget[] {
  return routes.flatMap(([method, pattern]) => {
    const values = /[:*]/.test(pattern.slice(1)) ? VALUES : [''];
    return values.map((value) => {
      const path = pattern.replaceAll(/(?<=\/):\w+|\*$/g, value);
      return { url: new URL(url), route: `${url} ${method} ${pattern}`, method, path, credential };
    });
  });
}

/** What the listeners said of their routes, without methods of RPCs, and what else they know. */
function targetsIn(
  log: readonly LogLine[],
  named: readonly string[],
  credential: readonly string[],
) {
  return log
    .filter(({ msg }) => msg === 'routes')
    .flatMap((line) => {
      const routes = (line['routes'] as readonly (readonly [string, string])[]).filter(
        ([, path]) => !path.includes('.v1.'),
      );
      const others = [...named, '/nowhere'].flatMap((path) =>
        ['GET', 'POST', 'OPTIONS'].map((method) => [method, path] as const),
      );
      const known = new Set(routes.map(([method, path]) => `${method} ${path}`));
      const more = others.filter(([method, path]) => !known.has(`${method} ${path}`));
      return targetsOf(
        `http://127.0.0.1:${String(line['port'])}`,
        [...routes, ...more],
        credential,
      );
    });
}

async function authorization(): Promise<Attacked> {
  const service = await startService({
    postgres: 'shared',
    env: { NODE_OPTIONS },
    startTimeoutMs: START_MS,
  });
  const credential = [
    `authorization: Bearer ${service.token}`,
    `x-admin-secret: ${service.adminSecret}`,
  ];
  const named = pathsNamedIn('src/gateway').filter((path) => !METHODS.has(path));
  const targets = targetsIn(service.log, named, credential);
  return {
    pid: service.pid,
    healthUrl: `${service.metricsUrl}/healthz`,
    targets,
    stop: () => service.stop(),
  };
}

async function notifications(): Promise<Attacked> {
  const undone: (() => void | Promise<void>)[] = [];
  const { pid, metricsUrl, log, exited } = await startNotify({ NODE_OPTIONS }, (undo) => {
    undone.push(undo);
  });
  const targets = targetsIn(log, pathsNamedIn('src/notify'), [
    `authorization: Bearer ${SERVICE_TOKEN}`,
  ]);
  const stop = async (): Promise<unknown> => {
    for (const undo of undone.toReversed()) await undo();
    return await exited;
  };
  return { pid, healthUrl: `${metricsUrl}/healthz`, targets, stop };
}

/** Stands in for all parts of the runner: routes are made of them, and none is called. */
function anyPart(): never {
  return new Proxy(() => undefined, {
    get: (_of, name) => (name === Symbol.toPrimitive ? () => '' : anyPart()),
    apply: () => anyPart(),
  }) as never;
}

async function runner(): Promise<Attacked> {
  const workspace = mkdtempSync(join(tmpdir(), 'gatehouse-hostile-'));
  const { child, url, ended } = await startProcess(
    workspace,
    { RUNNER_WEBHOOK_SECRET: 'secret' },
    undefined,
    () => undefined,
  );
  const { routes, inbox } = routesOf(anyPart(), () => false, false);
  const all = [...routes, inbox].map(({ method, pattern }) => [method, pattern] as const);
  const targets = targetsOf(url, [...all, ['GET', '/nowhere'], ['OPTIONS', '/api/runs']], []);
  const stop = (): Promise<unknown> => {
    child.kill('SIGKILL');
    return ended;
  };
  return { pid: child.pid ?? -1, healthUrl: `${url}/health`, targets, stop };
}

type Kind = readonly [name: string, requests: readonly (readonly HostileRequest[])[]];
/** Each kind has a toll of its own in the long run. */
const KINDS = byLength<readonly Kind[]>(
  [['queries, heads and bodies', [QUERIES, HEADS, BODIES]]],
  [
    ['queries', [QUERIES]],
    ['heads', [HEADS]],
    ['bodies', [BODIES]],
  ],
);

/** Each route with some of the requests, or all of them, and with the values that its parameters may have. */
function pairsOf(
  targets: readonly RestTarget[],
  requests: readonly HostileRequest[],
): readonly (readonly [RestTarget, HostileRequest])[] {
  const byRoute = [...Map.groupBy(targets, ({ route }) => route).values()];
  return byRoute.flatMap((some, at) => {
    const all = some.flatMap((target) => requests.map((request) => [target, request] as const));
    const sample = fc.shuffledSubarray(all, { minLength: SAMPLE_EACH, maxLength: SAMPLE_EACH });
    const [sampled = all] = fc.sample(sample, { seed: seed + at, numRuns: 1 });
    return IS_ALL ? all : sampled;
  });
}

/** Sends each pair, some at a time; what was answered with a failure of ours, or not at all. */
async function attack(pairs: readonly (readonly [RestTarget, HostileRequest])[]) {
  const queue = [...pairs];
  const wrong: string[] = [];
  const statuses = new Set<number>();
  const worker = async (): Promise<void> => {
    for (let pair = queue.shift(); pair !== undefined; pair = queue.shift()) {
      const [target, request] = pair;
      const status = await sendHostile(target, request);
      statuses.add(status);
      const isWrong = status === 0 || status === 500;
      if (isWrong)
        wrong.push(`${status}: ${target.method} ${target.path.slice(0, 80)}: ${request.name}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { wrong, statuses };
}

describe.each([
  ['authorization', authorization, 8],
  ['notifications', notifications, 5],
  ['runner', runner, 30],
] as const)('%s', (name, start, routesMin) => {
  let attacked: Attacked;
  beforeAll(async () => {
    process.stdout.write(`hostile: requests by the seed ${seed}\n`);
    attacked = await start();
  }, START_MS);
  afterAll(() => attacked.stop());

  test('its routes are found', () => {
    const found = new Set(attacked.targets.map(({ method, path }) => `${method} ${path}`));
    expect(found.size).toBeGreaterThanOrEqual(routesMin);
  });

  test.each(KINDS)('%s', { timeout: 600_000 }, async (kind, requests) => {
    const pairs = requests.flatMap((some) => pairsOf(attacked.targets, some));
    const { pid, healthUrl } = attacked;
    let result = { wrong: [] as string[], statuses: new Set<number>() };
    const toll = await tollOf({ pid, healthUrl }, async () => {
      result = await attack(pairs);
    });
    printToll(
      `${name}: ${pairs.length} hostile ${kind} to ${attacked.targets.length} routes`,
      toll,
    );
    expect(result.wrong).toEqual([]);
    // Some of all this is refused.
    expect([...result.statuses].some((status) => status >= 400)).toBe(true);
    expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
    expect(toll.grownBytes).toBeLessThan(GROWN_MAX);
  });
});
