import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { stringify } from 'yaml';

/** Scrapes come a good deal faster than in production, and count as if they were so far apart. */
const SCRAPE_EVERY_MS = 500;
const SAMPLE_SECONDS = 15;
/** A machine that is busy with tests answers late; that is no outage. */
const SCRAPE_TIMEOUT_MS = 3_000;
/** The one series whose values are instants. */
const START = 'process_start_time_seconds{';
const run = promisify(execFile);
const RULES = 'deploy/prometheus/alerts.yml';

/** Resolves when so many more samples were taken. */
export type SamplesLater = (samples: number) => Promise<void>;

/** What was scraped of some services, on which the committed rules are evaluated. */
export interface AlertTape {
  /** Scrapes so many times at least, and until `work` has ended, which goes on meanwhile and may wait for samples. */
  record(samples: number, work?: (later: SamplesLater) => Promise<void>): Promise<void>;
  /** The alerts that fired at any time of the tape, by the evaluator of promtool. */
  fired(): Promise<readonly string[]>;
}

/**
 * A new, empty tape of the metrics ports in `targets`, by job. Time is stretched: each scrape is a sample of 15 s, as
 * prometheus.yml asks for, so that an alert that waits for five minutes needs twenty of them. They are `everyMs` apart: what
 * takes so and so long in production must not take longer than as many of them.
 */
export function startTape(
  targets: Readonly<Record<string, string>>,
  everyMs = SCRAPE_EVERY_MS,
): AlertTape {
  const startedSeconds = Date.now() / 1_000;
  const series = new Map<string, (string | undefined)[]>();
  let length = 0;
  const scrapeAll = async (): Promise<void> => {
    const scraped = await Promise.all(
      Object.entries(targets).map(async ([job, url]) => [job, await scrape(url)] as const),
    );
    for (const [job, text] of scraped) {
      put(`up{job="${job}",instance="${job}:9090"}`, text === undefined ? '0' : '1');
      for (const [name, value] of samplesOf(text ?? '', job)) {
        put(name, name.startsWith(START) ? onTape(Number(value), startedSeconds, everyMs) : value);
      }
    }
    length += 1;
  };
  const put = (name: string, value: string): void => {
    const values = series.get(name) ?? [];
    series.set(name, values);
    values[length] = value;
  };
  return {
    async record(samples, work) {
      const later: SamplesLater = async (count) => {
        const wanted = length + count;
        while (length < wanted) await sleep(50);
      };
      const end = length + samples;
      let isWorking = work !== undefined;
      const worked = work?.(later).finally(() => (isWorking = false));
      worked?.catch(() => undefined); // Told by the last step.
      while (length < end || isWorking) {
        const startedMs = performance.now();
        await scrapeAll();
        await sleep(Math.max(0, everyMs - (performance.now() - startedMs)));
      }
      await worked;
    },
    fired: () => firedOn(series, length),
  };
}

/** An instant, by the time of a tape, which begins at 0. */
function onTape(seconds: number, startedSeconds: number, everyMs: number): string {
  return String(((seconds - startedSeconds) * SAMPLE_SECONDS * 1_000) / everyMs);
}

async function scrape(url: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(SCRAPE_TIMEOUT_MS);
    const response = await fetch(`${url}/metrics`, { signal });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined; // Nobody answers, or not in time: `up` is 0.
  }
}

/** Each sample of a scrape, with the labels that Prometheus adds. */
function* samplesOf(text: string, job: string): Generator<readonly [name: string, value: string]> {
  for (const line of text.split('\n')) {
    const [, name, labels, value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const own = labels === undefined || labels === '' ? '' : `${labels},`;
    yield [`${name}{${own}job="${job}",instance="${job}:9090"}`, value.replace('+Inf', 'Inf')];
  }
}

/** Errors: throws where promtool cannot evaluate. */
async function firedOn(
  series: ReadonlyMap<string, readonly (string | undefined)[]>,
  length: number,
): Promise<readonly string[]> {
  const rules = readFileSync(RULES, 'utf8');
  const named = new Set(
    rules.match(/\b(?:up|(?:authz|gatehouse|notify|runner|nodejs|process)_\w+)/g),
  );
  const inputs = [...series]
    .filter(([name]) => isAsked(name.replace(/\{.*/, ''), named))
    .map(([name, values]) => ({
      series: name,
      values: Array.from({ length }, (_, i) => values[i] ?? '_').join(' '),
    }));
  const end = `${length * SAMPLE_SECONDS}s`;
  const asked = {
    expr: `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${end}]))`,
    eval_time: end,
    exp_samples: [],
  };
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-alerts-'));
  try {
    writeFileSync(join(dir, 'alerts.yml'), rules);
    writeFileSync(
      join(dir, 'tape.yml'),
      stringify({
        rule_files: ['alerts.yml'],
        evaluation_interval: `${SAMPLE_SECONDS}s`,
        tests: [
          { interval: `${SAMPLE_SECONDS}s`, input_series: inputs, promql_expr_test: [asked] },
        ],
      }),
    );
    // Not in this thread: what services connect through may run on it.
    const told = await run('promtool', ['test', 'rules', 'tape.yml'], { cwd: dir }).then(
      ({ stdout, stderr }) => stdout + stderr,
      ({ stdout = '', stderr = '', message = '' }: Partial<Record<string, string>>) =>
        stdout + stderr === '' ? message : stdout + stderr,
    );
    if (told.includes('SUCCESS')) return [];
    // It tells what there is instead of nothing.
    const alerts = [...told.matchAll(/\{alertname="(\w+)"\}/g)].map(([, name = '']) => name);
    if (alerts.length === 0) throw new Error(told.slice(0, 2_000));
    return [...new Set(alerts)].toSorted();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Rules with a pattern over names ask for series that they do not name. */
function isAsked(name: string, named: ReadonlySet<string>): boolean {
  return named.has(name) || /_(?:scrape_errors_total|credential_info)$/.test(name);
}
