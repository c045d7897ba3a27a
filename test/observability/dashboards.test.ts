import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readAlerts, readDashboards, readYaml } from './deploy-files.ts';
import { documentedSeries } from './documented-series.ts';

const dashboards = readDashboards();
const [datasource] = (
  readYaml('deploy/grafana/provisioning/datasources/prometheus.yml') as {
    datasources: readonly { uid: string }[];
  }
).datasources;

test('there are two, told apart and linked to each other', () => {
  expect(dashboards.map(({ uid }) => uid)).toEqual([
    'gatehouse-decisions',
    'gatehouse-notify-runner',
  ]);
  const urls = dashboards.map(({ uid }) => `/d/${uid}`);
  for (const { links } of dashboards) {
    expect(links.length).toBeGreaterThan(0);
    for (const { url } of links) expect(urls).toContain(url);
  }
});

/** A name of ours with what follows it. */
const SELECTORS =
  /\b(?:authz|gatehouse|notify|runner|process|nodejs)_[a-z0-9_]+(?:\{[^}]*\})?(?![a-z0-9_]*")/g;

test('every series of the three services is on one of them', () => {
  const queries = dashboards
    .flatMap(({ panels }) => panels)
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .join(' ');
  const series = documentedSeries();
  expect(series.length).toBeGreaterThan(120);
  const missing = series.filter(
    (name) => !new RegExp(`\\b${name}(?:_bucket|_sum|_count)?\\{`).test(queries),
  );
  expect(missing).toEqual([]);
});

/** Gauges that every instance reads from the one database: a sum would count it once for each. */
const SHARED_GAUGES = ['notify_queue_depth', 'notify_queue_oldest_due_seconds'];

test('what all instances read from one database is not added up', () => {
  const panels = dashboards.flatMap((dashboard) => dashboard.panels);
  const queries = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...readAlerts().map(({ expr }) => expr),
  ].filter((expr) => SHARED_GAUGES.some((name) => expr.includes(name)));
  expect(queries.length).toBeGreaterThan(2);
  for (const query of queries) expect(query).toMatch(/^max( by \(job\))? ?\(/);
});

describe.each(dashboards)('$title', (dashboard) => {
  const panels = dashboard.panels.filter(({ type }) => type !== 'row');

  test('its panels have ids, titles, places and units of their own', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { title, fieldConfig, gridPos } of panels) {
      expect(title).not.toBe('');
      expect(fieldConfig?.defaults.unit, title).toMatch(/^[a-z]+$/);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    }
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  test('data source and instances are variables; it begins with the provisioned one and all', () => {
    const [source, instance] = dashboard.templating.list;
    expect(source).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    expect(source?.current.value).toBe(datasource?.uid);
    expect(instance).toMatchObject({ name: 'instance', type: 'query', multi: true });
    expect(instance).toMatchObject({ includeAll: true, allValue: '.*', refresh: 2 });
    expect(instance?.current.value).toEqual(['$__all']);
    expect(dashboard.templating.list).toHaveLength(2);
  });

  test('its queries go to that data source and those instances, each under its own letter', () => {
    for (const { title, datasource: source, targets = [] } of panels) {
      expect(source?.uid, title).toBe('${datasource}');
      expect(targets.length, title).toBeGreaterThan(0);
      for (const { datasource: of, expr } of targets) {
        expect(of.uid, title).toBe('${datasource}');
        // Every selector, and there is one in each.
        const selectors = expr.match(SELECTORS) ?? [];
        expect(selectors.length, expr).toBeGreaterThan(0);
        for (const selector of selectors) expect(selector, expr).toContain('instance=~"$instance"');
      }
      const letters = targets.map(({ refId }) => refId);
      expect(new Set(letters).size).toBe(letters.length);
    }
  });

  test('it names no machine', () => {
    const text = readFileSync(dashboard.path, 'utf8');
    expect(text).not.toMatch(/https?:\/\/|localhost|\d+\.\d+\.\d+\.\d+|"id": null|__inputs/);
  });
});
