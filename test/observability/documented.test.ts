/* docs/observability.md and the code say the same: every series and every event, and no other. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { measureStages } from '../../src/authz/metrics/decision-metrics.ts';
import { createMetrics } from '../../src/authz/metrics/metrics.ts';
import { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import { createNotifyMetrics } from '../../src/notify/service/metrics.ts';
import { BackgroundLoops } from '../../src/observability/background-loops.ts';
import { registerBodyMetrics } from '../../src/observability/body-metrics.ts';
import { MetricStore } from '../../src/observability/metric-store.ts';
import {
  registerProcessMetrics,
  showHttp1Connections,
} from '../../src/observability/process-metrics.ts';
import { RunnerMetrics } from '../../src/runner/wiring/runner-metrics.ts';
import { namesOf } from './documented-series.ts';

const BUILD = { version: '1', commit: 'c' };

/** The lines of the chapter with this heading of level 2. */
function chapterOf(title: string): readonly string[] {
  const lines = readFileSync('docs/observability.md', 'utf8').split('\n');
  const start = lines.indexOf(`## ${title}`);
  if (start < 0) throw new Error(`no chapter ${title}`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '));
  return length < 0 ? lines.slice(start) : lines.slice(start, start + 1 + length);
}

type Row = { readonly name: string; readonly cells: readonly string[] };

/** Rows of the tables of a chapter below a heading that ends with `kind`. */
function rowsOf(title: string, kind: 'eries' | 'vents'): readonly Row[] {
  let isWanted = false;
  const rows: Row[] = [];
  for (const line of chapterOf(title)) {
    if (line.startsWith('#')) isWanted = new RegExp(`${kind}\\b`).test(line);
    if (isWanted) {
      const cells = line
        .split('|')
        .slice(2, -1)
        .map((cell) => cell.trim());
      rows.push(...namesOf(line).map((name) => ({ name, cells })));
    }
  }
  return rows;
}

function familiesOf(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => /^# TYPE (\S+) /.exec(line)?.[1] ?? []);
}

async function processFamilies(): Promise<readonly string[]> {
  const store = new MetricStore('process_only');
  registerProcessMetrics(store);
  return familiesOf(await store.render()).filter((name) => !name.startsWith('process_only'));
}

function idleLoops(): BackgroundLoops {
  return new BackgroundLoops({
    log: () => undefined,
    describe: () => ({}),
    monotonicMs: () => 0,
  });
}

/** With the families that are there only where they were asked for. */
function renderAll(): Promise<string> {
  const metrics = createMetrics(BUILD);
  registerBodyMetrics(metrics.store, 'gatehouse', new BodyBudget());
  idleLoops().showIn(metrics.store, 'gatehouse');
  showHttp1Connections(metrics.store, 'gatehouse', () => ({ uws: 0, node: 0 }));
  measureStages(metrics.store, 1);
  return metrics.render();
}

const SERVICES = [
  { title: 'Authorization service', render: renderAll },
  {
    title: 'Workflow runner',
    render: () => {
      const metrics = new RunnerMetrics({
        counts: () => ({ queued: 0, inProgress: 0 }),
        refused: () => 0,
        hub: () => ({ subscribers: 0, published: 0, dropped: 0 }),
        build: BUILD,
        queuedMax: 1,
        activeMax: 1,
      });
      registerBodyMetrics(metrics.store, 'runner', new BodyBudget());
      idleLoops().showIn(metrics.store, 'runner');
      return metrics.store.render();
    },
  },
  {
    title: 'Notification service',
    render: () => {
      const metrics = createNotifyMetrics('1', 'c');
      metrics.bodies(new BodyBudget());
      metrics.showLoops(idleLoops());
      return metrics.render();
    },
  },
];

test('the series of the process are documented for all services', async () => {
  const documented = rowsOf('All services', 'eries').map(({ name }) => name);
  expect(documented.toSorted()).toEqual((await processFamilies()).toSorted());
});

describe.each(SERVICES)('$title', ({ title, render }) => {
  test('every series is documented, and every documented one is there', async () => {
    const shared = await processFamilies();
    const exported = familiesOf(await render()).filter((name) => !shared.includes(name));
    expect(exported.length).toBeGreaterThan(5);
    expect(
      rowsOf(title, 'eries')
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(exported.toSorted());
  });

  test('every series and event says what it tells', () => {
    const rows = [...rowsOf(title, 'eries'), ...rowsOf(title, 'vents')];
    expect(rows.length).toBeGreaterThan(10);
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
    for (const { name, cells } of rows) {
      expect(cells, name).toHaveLength(2);
      expect(cells[0], name).toMatch(/\w{2}/);
    }
  });
});

/**
 * Where the code names an event of its log as a literal: `log('warn', 'name'`, `logger.info(…, 'name')`,
 * `fail('name'`, `report('name'`, `onIncident('name'`.
 */
const EVENT_CALLS: readonly RegExp[] = [
  /\blog\(\s*'(?:debug|info|warn|error)',\s*'([a-z0-9_]+)'/g,
  /\blogger\.(?:debug|info|warn|error)\((?:[^;]*?,\s*)?'([a-z0-9_]+)'/g,
  /\b(?:fail|onFatal)\('([a-z_]+)'/g,
  /[rR]eport\(\s*'([a-z0-9_]+)'/g,
  /\bonIncident\('([a-z0-9_]+)'/g,
];

function literalsIn(patterns: readonly string[], calls: readonly RegExp[]): readonly string[] {
  const texts = patterns
    .flatMap((pattern) => globSync(pattern))
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path) => readFileSync(path, 'utf8'));
  const names = calls.flatMap((call) =>
    texts.flatMap((text) => [...text.matchAll(call)].map((match) => match[1] ?? '')),
  );
  return [...new Set(names)].toSorted();
}

const CHAPTERS = ['All services', ...SERVICES.map(({ title }) => title)];

test('every documented event is in the code', () => {
  const literals = new Set(literalsIn(['src/**/*.ts'], [/'([a-z0-9_.]+)'/g]));
  const documented = CHAPTERS.flatMap((title) => rowsOf(title, 'vents')).map(({ name }) => name);
  expect(documented.length).toBeGreaterThan(80);
  expect(documented.filter((name) => !literals.has(name))).toEqual([]);
});

test('every event of the authorization service and of the shared parts is documented', () => {
  const patterns = ['src/*.ts', 'src/{http,store,gateway,services,workers,observability}/**/*.ts'];
  const inCode = literalsIn(patterns, EVENT_CALLS);
  expect(inCode.length).toBeGreaterThan(30);
  const documented = ['All services', 'Authorization service'].flatMap((title) =>
    rowsOf(title, 'vents').map(({ name }) => name),
  );
  expect(inCode.filter((name) => !documented.includes(name))).toEqual([]);
});
