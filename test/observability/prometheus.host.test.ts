/*
 * The committed configuration, rules and dashboards on a real Prometheus that scrapes the three real
 * services while they work. Skipped where `prometheus` is not on PATH (Debian package prometheus).
 */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inLong, inShort } from '../support/test-length.ts';
import { type AllServices, startAllServices } from './all-services.ts';
import { readAlerts, readDashboards } from './deploy-files.ts';
import { type PrometheusServer, startPrometheus } from './prometheus-server.ts';
import { type RealWork, startRealWork, WORK_FILES, WORK_SETTINGS } from './real-work.ts';

const found = spawnSync('prometheus', ['--version']);

/** What Grafana puts for the shortest sensible range; scrapes are two seconds apart here. */
const RATE_INTERVAL = '20s';
const DATA_TIMEOUT_MS = 25_000;
const ROUND_PAUSE_MS = 1_500;

type Sample = { readonly metric: object; readonly value: readonly [number, string] };
type QueryAnswer = { readonly resultType: string; readonly result: readonly Sample[] };

/** There only where issuers of JWTs are named, whose keys must come over https: test/callers has them. */
const OF_ISSUERS = 'gatehouse_jwks_failing';
/** Off by default. */
const OF_STAGES = 'gatehouse_stage_';

describe.skipIf(found.error !== undefined)(
  'Prometheus over the three services (skipped unless prometheus is on PATH)',
  () => {
    let all: AllServices;
    let work: RealWork;
    let prometheus: PrometheusServer;
    let isWorking = true;
    let working: Promise<void>;

    beforeAll(async () => {
      all = await startAllServices({ env: WORK_SETTINGS, files: WORK_FILES });
      work = await startRealWork(all);
      const targets = Object.entries(all.metrics).map(([name, url]) => [name, new URL(url).host]);
      prometheus = await startPrometheus(Object.fromEntries(targets) as Record<string, string>);
      const workOn = async (): Promise<void> => {
        while (isWorking) {
          await work.round();
          await new Promise((resolve) => setTimeout(resolve, ROUND_PAUSE_MS));
        }
      };
      working = workOn();
      working.catch(() => undefined); // Told by the last step.
    }, 120_000);

    afterAll(async () => {
      isWorking = false;
      try {
        await working;
      } finally {
        await work?.stop();
        await prometheus?.stop();
        expect(await all?.stop()).toBe(0);
      }
    }, 120_000);

    const query = (expression: string): Promise<QueryAnswer> =>
      prometheus.get('query', { query: expression });

    test('scrapes all three', async () => {
      await expect
        .poll(async () => (await query('up == 1')).result.length, { timeout: DATA_TIMEOUT_MS })
        .toBe(3);
    });

    inShort(test).each(readDashboards())(
      'every query of "$title" returns data',
      async ({ panels }) => {
        const queries = panels
          .flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
          .filter(({ expr }) => !expr.includes(OF_ISSUERS) && !expr.includes(OF_STAGES));
        expect(queries.length).toBeGreaterThan(30);
        const without = async (): Promise<readonly string[]> => {
          const missing: string[] = [];
          for (const { title, expr } of queries) {
            const { result } = await query(
              expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$instance', '.*'),
            );
            const hasData = result.some(({ value: [, text] }) => Number.isFinite(Number(text)));
            if (!hasData) missing.push(`${title}: ${expr}`);
          }
          return missing;
        };
        await expect.poll(without, { timeout: DATA_TIMEOUT_MS, interval: 1_000 }).toEqual([]);
      },
    );

    inShort(test)('what the work caused is what the series say', async () => {
      const expressions = [
        'sum(authz_eval_backstop_total{reason="budget"}) > 0',
        'sum(authz_check_decisions_total{outcome="allowed"}) > 0',
        'sum(gatehouse_eval_reads_bucket{rpc="Check",le="+Inf"}) - sum(gatehouse_eval_reads_bucket{rpc="Check",le="64"}) > 0',
        'sum(gatehouse_commits_total) > 0',
        'sum(notify_send_total{channel="webhook",status="sent"}) > 0',
        'sum(notify_send_total{channel="webhook",status="dead"}) > 0',
        'sum(notify_send_total{channel="live",status="sent"}) > 0',
        'sum(notify_retry_total{result="dead"}) > 0',
        'sum(notify_live_connections{device_type="web"}) == 1',
        'sum(runner_runs_total{conclusion="success"}) > 0',
        'sum(runner_runs_total{conclusion="failure"}) > 0',
      ];
      const without = async (): Promise<readonly string[]> => {
        const results = await Promise.all(expressions.map(query));
        return expressions.filter((_, index) => results[index]?.result.length === 0);
      };
      await expect.poll(without, { timeout: DATA_TIMEOUT_MS }).toEqual([]);
    });

    inLong(test)(
      'every alert is evaluated without an error, and what the work caused fires',
      async () => {
        type Rule = {
          readonly name: string;
          readonly health: string;
          readonly lastError?: string;
          readonly state: string;
        };
        const rules = async (): Promise<readonly Rule[]> => {
          const { groups } = await prometheus.get<{ groups: { rules: Rule[] }[] }>('rules');
          return groups.flatMap((group) => group.rules);
        };
        await expect
          .poll(async () => (await rules()).map(({ health }) => health), {
            timeout: DATA_TIMEOUT_MS,
          })
          .toEqual(readAlerts().map(() => 'ok'));
        const names = (await rules()).map(({ name }) => name);
        expect(new Set(names)).toEqual(new Set(readAlerts().map(({ alert }) => alert)));
        const firing = async (): Promise<readonly string[]> =>
          (await rules()).filter(({ state }) => state === 'firing').map(({ name }) => name);
        await expect
          .poll(firing, { timeout: DATA_TIMEOUT_MS })
          .toEqual(expect.arrayContaining(['AuthzBudgetExhausted', 'NotifyDeadLetters']));
        expect(await firing()).not.toContain('ServiceDown');
        // Each selector of each expression names series that there are.
        for (const { alert, expr } of readAlerts()) {
          for (const selector of expr.match(
            /\b(?:authz|gatehouse|notify|runner|nodejs|process)_\w+/g,
          ) ?? []) {
            if (
              selector.endsWith('_scrape_errors_total') ||
              selector === OF_ISSUERS ||
              /^(?:notify|runner|authz)$/.test(selector)
            )
              continue;
            const { result } = await query(`count(${selector})`);
            expect(result.length, `${alert}: ${selector}`).toBe(1);
          }
        }
      },
    );

    inShort(test)('what was scraped is clean', async () => {
      for (const [name, url] of Object.entries(all.metrics)) {
        const input = await (await fetch(`${url}/metrics`)).text();
        const { stderr, stdout, status } = spawnSync('promtool', ['check', 'metrics'], {
          input,
          encoding: 'utf8',
        });
        expect(stderr + stdout, name).toBe('');
        expect(status).toBe(0);
      }
    });
  },
);
