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

/** A name of ours, or Prometheus's own `up`, with what follows it. */
const SELECTORS =
  /\b(?:up|(?:authz|gatehouse|notify|runner|process|nodejs)_[a-z0-9_]+)\b(?:\{[^}]*\})?(?![a-z0-9_]*")/g;

/** Prometheus's own, beside which the three services document all others. */
const SERIES: readonly string[] = ['up', ...documentedSeries()];

/** The series that an expression reads, as they are documented; what is not stays as it is written. */
function seriesOf(expr: string): readonly string[] {
  const patterns = [...expr.matchAll(/__name__=~"([^"]+)"/g)].map(([, of]) => `^(?:${of})$`);
  const named = (expr.match(SELECTORS) ?? []).map((selector) => selector.replace(/\{.*/s, ''));
  const matching = patterns.flatMap((of) => SERIES.filter((name) => new RegExp(of).test(name)));
  return [...named, ...matching].map((name) => {
    const histogram = name.replace(/_(?:bucket|sum|count)$/, '');
    return SERIES.includes(histogram) ? histogram : name;
  });
}

const shown = new Set(
  dashboards
    .flatMap(({ panels }) => panels)
    .flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => seriesOf(expr))),
);

test('they name no series that is not documented', () => {
  expect(shown.size).toBeGreaterThan(80);
  expect([...shown].filter((name) => !SERIES.includes(name))).toEqual([]);
});

/** What an alert looks at and no panel shows, with the reason. */
const ALERTED_ONLY: Readonly<Record<string, string>> = {
  gatehouse_upkeep_runs_total:
    'one instance works for all: those that are chosen may have none to show, and all is well',
};

test('every series that an alert looks at is on a panel', () => {
  const alerted = readAlerts().map(({ alert, expr }) => ({ alert, series: seriesOf(expr) }));
  for (const { alert, series } of alerted) expect(series, alert).not.toEqual([]);
  const missing = alerted.flatMap(({ series }) => series).filter((name) => !shown.has(name));
  expect(new Set(missing)).toEqual(new Set(Object.keys(ALERTED_ONLY)));
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

  test('twelve panels answer three questions, in this order', () => {
    const { panels: all } = dashboard;
    const rows = all.filter(({ type }) => type === 'row');
    expect(rows.map(({ title }) => title)).toEqual([
      'Is it well?',
      'Who is slow?',
      'Who is refused?',
    ]);
    expect(panels).toHaveLength(12);
    expect(all[0]).toBe(rows[0]);
    // Grafana puts below a row what comes after it and lies lower.
    expect(all.map(({ gridPos: { y } }) => y)).toEqual(
      all.map(({ gridPos: { y } }) => y).toSorted((a, b) => a - b),
    );
    for (const { title, gridPos } of rows) {
      const [next] = all.slice(all.findIndex((panel) => panel.title === title) + 1);
      expect(next?.type, title).not.toBe('row');
      expect(next?.gridPos.y, title).toBe(gridPos.y + 1);
    }
  });

  test('its panels have ids, titles, places and units of their own', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { title, description, fieldConfig, gridPos } of panels) {
      expect(title).not.toBe('');
      expect(description, title).toMatch(/^.{40,150}\.$/);
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
