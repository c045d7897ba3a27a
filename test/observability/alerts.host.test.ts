import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { byLength, inShort } from '../support/test-length.ts';
import { readAlerts, readYaml } from './deploy-files.ts';

const FOLDER = 'deploy/prometheus';
/** The cases take promtool some 20 s of a processor: a day passes in one of them. */
const PROMTOOL_TIMEOUT_MS = 180_000;
const alerts = readAlerts();

type QuietScenario = {
  readonly name: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly promql_expr_test: readonly { readonly expr: string; readonly exp_samples: unknown[] }[];
};

type Case = {
  readonly name: string;
  readonly alert_rule_test?: readonly {
    readonly alertname: string;
    readonly exp_alerts: readonly unknown[];
  }[];
};

inShort(test)('each alert has a name, a severity, a summary and a runbook of its own', () => {
  const names = alerts.map(({ alert }) => alert);
  expect(names.length).toBeGreaterThan(20);
  expect(new Set(names).size).toBe(names.length);
  const headings = readFileSync('docs/observability.md', 'utf8')
    .split('\n')
    .flatMap((line) => /^#{2,4} (\w+)$/.exec(line)?.[1]?.toLowerCase() ?? []);
  for (const { alert, labels, annotations } of alerts) {
    expect(['critical', 'warning']).toContain(labels.severity);
    expect(annotations.summary, alert).toMatch(/\.$/);
    expect(annotations.runbook_url).toBe(`docs/observability.md#${alert.toLowerCase()}`);
    expect(headings).toContain(alert.toLowerCase());
  }
});

inShort(test)('each alert has a case in which it fires and one in which it does not', () => {
  const { tests } = readYaml(`${FOLDER}/alerts.test.yml`) as { tests: readonly Case[] };
  const cases = tests.flatMap((one) => one.alert_rule_test ?? []);
  for (const { alert } of alerts) {
    const counts = cases
      .filter((one) => one.alertname === alert)
      .map((one) => one.exp_alerts.length);
    expect(
      counts.some((count) => count > 0),
      `${alert} fires`,
    ).toBe(true);
    expect(counts.includes(0), `${alert} stays quiet`).toBe(true);
  }
});

inShort(test)(
  'one error, and one planned restart, of everything that alerts look at, fires nothing',
  () => {
    const { tests } = readYaml(`${FOLDER}/alerts.quiet.test.yml`) as { tests: QuietScenario[] };
    expect(tests.map(({ name }) => name)).toEqual([
      'one error of each kind fires nothing',
      'one planned restart of PostgreSQL, which takes 45 s, fires nothing',
      'one planned restart of each service, which takes a minute, fires nothing',
    ]);
    for (const { name, input_series: inputs, promql_expr_test: asked } of tests) {
      const given = new Set(inputs.map(({ series }) => series.replace(/\{.*/, '')));
      for (const { alert, expr } of alerts) {
        const wanted = expr.match(
          /\b(?:up|(?:authz|gatehouse|notify|runner|nodejs|process)_\w+)\b/g,
        );
        const missing = (wanted ?? []).filter(
          // Parts of a pattern over names are none.
          (series) => !given.has(series) && !/^(?:authz|notify|runner|gatehouse)$/.test(series),
        );
        expect(missing, `${name}: ${alert}`).toEqual([]);
      }
      expect(asked).toEqual([
        {
          expr: 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[40m]))',
          eval_time: '40m',
          exp_samples: [],
        },
      ]);
    }
    // And it is no scenario of nothing: most series move in the first one.
    const moving = tests[0]?.input_series.filter(({ values }) => /\s/.test(values)) ?? [];
    expect(moving.length).toBeGreaterThan(40);
  },
);

const found = spawnSync('promtool', ['--version']);

describe.skipIf(found.error !== undefined)('promtool (Debian package prometheus)', () => {
  const promtool = (...args: readonly string[]) =>
    spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' });

  inShort(test)('config and rules', () => {
    expect(promtool('check', 'config', '--lint=all', '--lint-fatal', 'prometheus.yml').status).toBe(
      0,
    );
    const rules = promtool('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yml');
    expect(rules.stdout).toContain(`${alerts.length} rules found`);
    expect(rules.status).toBe(0);
  });

  test.each([byLength('alerts.quiet.test.yml', 'alerts.test.yml')])(
    'the cases of %s',
    (file) => {
      const result = promtool('test', 'rules', file);
      expect(result.stdout + result.stderr).toContain('SUCCESS');
      expect(result.status).toBe(0);
    },
    PROMTOOL_TIMEOUT_MS,
  );
});
