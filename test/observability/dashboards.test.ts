import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readAlerts, readDashboards, readYaml } from './deploy-files.ts';

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

  test('its queries go to the provisioned datasource, each under its own letter', () => {
    for (const { title, datasource: source, targets = [] } of panels) {
      expect(source?.uid, title).toBe(datasource?.uid);
      expect(targets.length, title).toBeGreaterThan(0);
      for (const target of targets) expect(target.datasource.uid, title).toBe(datasource?.uid);
      const letters = targets.map(({ refId }) => refId);
      expect(new Set(letters).size).toBe(letters.length);
    }
  });

  test('it names no machine', () => {
    const text = readFileSync(dashboard.path, 'utf8');
    expect(text).not.toMatch(/https?:\/\/|localhost|\d+\.\d+\.\d+\.\d+|"id": null|__inputs/);
  });
});
