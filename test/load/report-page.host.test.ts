import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LatencyHistogram } from '../../load/drive/latency-histogram.ts';
import type { RunResult, RunSecond } from '../../load/drive/run-result.ts';
import { reportPage, runOf } from '../../load/report/page.ts';
import { type BrowserOptions, chromiumPath, openPage } from '../runner/ui/browser.ts';
import { loadInProcess } from './support.ts';

const HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked=1">';

/** A run of so many seconds: a rise, a stall in the middle, refusals at its end. */
function runOfSeconds(count: number, factor = 1): RunResult {
  const histogram = new LatencyHistogram();
  const seconds = Array.from({ length: count }, (_, second): RunSecond => {
    const offered = 100 + Math.round((900 * second) / count);
    const isStalled = second === Math.floor(count / 2);
    const isFull = second > count * 0.8;
    const p50 = factor * (0.4 + second / count);
    for (let i = 0; i < 5; i++) histogram.record(p50 * (1 + i / 2) * (isStalled ? 40 : 1));
    const worst = isStalled ? 400 : 1;
    return {
      second,
      offered,
      notSent: 0,
      answered: isFull ? offered - 50 : offered,
      wrong: 0,
      refused: isFull ? { 'resource_exhausted QUEUE_FULL': 40, [HOSTILE.slice(0, 80)]: 10 } : {},
      latencies: {
        p50,
        p90: p50 * 2,
        p99: p50 * 5 * worst,
        p999: p50 * 8 * worst,
        max: p50 * 9 * worst,
      },
    };
  });
  const half = Math.floor(count / 2);
  return {
    format: 'gatehouse-load/1',
    title: `A run ${HOSTILE}`,
    startedAt: '2026-01-01T00:00:00.000Z',
    target: 'http://127.0.0.1:8080',
    plan: undefined,
    replay: undefined,
    generators: 2,
    seconds,
    stages: [
      { name: 'morning', from: 0, to: half },
      { name: HOSTILE, from: half, to: count },
    ],
    operations: [
      {
        stage: 'morning',
        operation: 'check',
        answered: 1000,
        wrong: 0,
        refused: 0,
        perSecond: 100,
        latencies: { p50: factor, p90: 2, p99: 3 * factor, p999: 4, max: 5 },
      },
    ],
    latencies: histogram.pack(),
    server: seconds.map(({ second }) => ({
      second,
      cpuCores: 0.5 + second / count,
      residentMib: 300 + second,
      workerQueue: second % 7,
      writeQueue: 0,
      loopDelayP99Ms: 21,
      poolWaiting: 0,
    })),
    generatorCpuCores: 0.5,
    sentLateP99Ms: 1.2,
    failures: [],
    isWhole: true,
  };
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-report-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function written(name: string, html: string): string {
  writeFileSync(join(folder, name), html);
  return pathToFileURL(join(folder, name)).href;
}

const pageOf = (run: RunResult): string => reportPage([{ label: '', run }]);

test('a report holds its run, whatever stands in it, and is no other markup', () => {
  const run = runOfSeconds(60);
  const html = pageOf(run);
  expect(runOf(html, 'report')).toEqual(JSON.parse(JSON.stringify(run)));
  expect(html).not.toContain('<script>window');
  expect(html).not.toContain('<img');
  expect(html.match(/<script/g)).toHaveLength(3);
});

test('a run is read from its JSON and from a report of the release before; anything else is named', () => {
  const run = JSON.stringify(runOfSeconds(60));
  const before = `<p>a report</p><script type="application/json" id="gatehouse-load">${run.replaceAll('<', '\\u003c')}</script></body>`;
  for (const text of [run, before]) expect(runOf(text, 'a')).toEqual(JSON.parse(run));
  for (const text of ['null', '[]', '{}', '[{"label":""}]', '{"format":"gatehouse-load/2"}']) {
    expect(() => runOf(text, 'a.json')).toThrow('a.json is no run that this release knows');
  }
  expect(() => runOf('<html>', 'a.html')).toThrow(
    'a.html is neither a report of a run nor its JSON',
  );
});

test('a comparison says what changed, on the terminal too', async () => {
  written('a.html', pageOf(runOfSeconds(60)));
  writeFileSync(join(folder, 'b.json'), JSON.stringify(runOfSeconds(60, 2)));
  const files = ['a.html', 'b.json', 'compared.html'].map((name) => join(folder, name));
  const [a = '', b = '', compared = ''] = files;
  const { code, stdout, stderr } = await loadInProcess(['compare', a, b, '--report', compared]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toMatch(/^p50 ms .* \+(9[89]|10[01])\.\d % worse$/m);
  expect(stdout).toMatch(/^morning, check: p99 ms +3 +6 +\+100\.0 % worse$/m);
  expect(stdout).toMatch(/^answered a second .* 0\.0 %$/m);
  expect(readFileSync(compared, 'utf8')).toContain('<td>+100.0 % worse</td>');
  for (const [file, message] of [
    ['package.json', 'package.json is no run that this release knows'],
    [compared, 'compares two runs'],
  ] as const) {
    const refused = await loadInProcess(['compare', file, a]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(message);
  }
});

describe.skipIf(chromiumPath === undefined)('in a browser', () => {
  const opened = async (url: string, options: BrowserOptions) => {
    const { page, problems } = await openPage(options);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(url);
    expect(requests).toEqual([url]);
    expect(problems).toEqual([]);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(options.width ?? 1280);
    const charts = await page.$$eval('.uplot', (plots) =>
      plots.map((plot) => [
        plot.querySelector('.u-title')?.textContent,
        plot.querySelectorAll('.u-series').length - 1,
      ]),
    );
    return { page, charts };
  };

  test.each(['light', 'dark'] as const)(
    'a report draws all its charts, loads nothing and runs nothing of its run (%s)',
    async (colorScheme) => {
      const url = written(`${colorScheme}.html`, pageOf(runOfSeconds(300)));
      const { page, charts } = await opened(url, { colorScheme });
      expect(charts).toEqual([
        ['Latency over time, ms', 5],
        ['Requests a second', 3],
        ['Latency by percentile, ms', 1],
        ['Processors of the service, cores busy', 1],
        ['Memory of the service, MiB resident', 1],
        ['Waiting in the service, requests', 3],
        ['Delay of the gateway’s thread, ms (p99)', 1],
      ]);
      // Something is drawn on each.
      const drawn = await page.$$eval('canvas', (all) =>
        all.map(
          (canvas) =>
            new Set(canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data)
              .size,
        ),
      );
      expect(drawn.filter((colours) => colours > 10)).toHaveLength(charts.length);
      expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
      expect(await page.textContent('h1')).toBe(`A run ${HOSTILE}`);
    },
    60_000,
  );

  test('two runs are drawn over each other, on a telephone as well', async () => {
    const [a, b] = [runOfSeconds(300), runOfSeconds(300, 2)];
    const html = reportPage([
      { label: 'A', run: a },
      { label: 'B', run: b },
    ]);
    const { page, charts } = await opened(written('phone.html', html), { width: 390, height: 800 });
    expect(charts[0]).toEqual(['Latency over time, ms', 4]);
    expect(await page.textContent('.u-legend')).toMatch(/A p50.*A p99.*B p50.*B p99/s);
  }, 60_000);

  test('without scripts it is read by its tables', async () => {
    const url = written('plain.html', pageOf(runOfSeconds(60)));
    const { page, charts } = await opened(url, { hasScripts: false });
    expect(charts).toEqual([]);
    expect(await page.textContent('body')).toMatch(/morning check.*QUEUE_FULL/s);
  }, 60_000);
});
