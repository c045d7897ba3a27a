import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LatencyHistogram } from '../../load/drive/latency-histogram.ts';
import type { RunResult, RunSecond } from '../../load/drive/run-result.ts';
import { comparisonReport } from '../../load/report/comparison-report.ts';
import { REPORT_BYTES_MAX, runOf } from '../../load/report/report-page.ts';
import { runReport } from '../../load/report/run-report.ts';
import { chromiumPath, openPage } from '../runner/ui/browser.ts';
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

test('a report of a day stays within its bytes, and can be compared', () => {
  const html = runReport(runOfSeconds(24 * 3600));
  expect(Buffer.byteLength(html)).toBeLessThanOrEqual(REPORT_BYTES_MAX);
  const again = runOf(html, 'report');
  expect(again.seconds.length).toBeLessThanOrEqual(3000);
  // The stall is still there.
  expect(Math.max(...again.seconds.map(({ latencies }) => latencies.max))).toBeGreaterThan(1000);
});

test('a comparison says what changed, on the terminal too', async () => {
  written('a.html', runReport(runOfSeconds(60)));
  writeFileSync(join(folder, 'b.json'), JSON.stringify(runOfSeconds(60, 2)));
  const { code, stdout, stderr } = await loadInProcess([
    'compare',
    join(folder, 'a.html'),
    join(folder, 'b.json'),
    '--report',
    join(folder, 'compared.html'),
  ]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toMatch(/^p50 ms .* \+9[89]\.\d %|^p50 ms .* \+10[01]\.\d %/m);
  expect(stdout).toMatch(/^morning, check: p99 ms +3\.000 +6\.000 +\+100\.0 %$/m);
  expect(stdout).toMatch(/^answered a second .* 0\.0 %$/m);
  const html = readFileSync(join(folder, 'compared.html'), 'utf8');
  expect(html).toContain('class="worse">+100.0 %');
  const { code: refused, stderr: why } = await loadInProcess([
    'compare',
    'package.json',
    'README.md',
  ]);
  expect(refused).not.toBe(0);
  expect(why).toContain('package.json is no run that this release knows');
});

describe.skipIf(chromiumPath === undefined)('in a browser', () => {
  test.each(['light', 'dark'] as const)(
    'a report draws all its charts, loads nothing and runs nothing (%s)',
    async (colorScheme) => {
      const url = written(`${colorScheme}.html`, runReport(runOfSeconds(300)));
      const { page, problems: faults } = await openPage({ colorScheme, width: 1280, height: 2000 });
      const requests: string[] = [];
      page.on('request', (request) => requests.push(request.url()));
      await page.goto(url);
      expect(requests).toEqual([url]);
      expect(faults).toEqual([]);
      const charts = await page.$$eval('figure', (figures) =>
        figures.map((figure) => ({
          title: figure.querySelector('figcaption')?.firstChild?.textContent?.trim(),
          lines: figure.querySelectorAll('path.line').length,
          width: figure.querySelector('svg')?.getBoundingClientRect().width ?? 0,
          legend: figure.querySelectorAll('.legend li').length,
        })),
      );
      expect(charts.map(({ title, lines }) => [title, lines])).toEqual([
        ['Latency over time', 5],
        ['Distribution of latency', 1],
        ['Throughput', 2],
        ['Refusals', 2],
        ['Processors of the service', 1],
        ['Memory of the service', 1],
        ['Waiting in the service', 3],
        ['Delay of the gateway’s thread', 1],
      ]);
      for (const { lines, legend, width, title } of charts) {
        expect(legend, title).toBe(lines);
        expect(width, title).toBeGreaterThan(300);
      }
      // Every line lies within its chart, and is seen against what is behind it.
      const outside = await page.$$eval('svg', (all) =>
        all.flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('path,text')]
            .filter((part) => {
              const box = part.getBoundingClientRect();
              return (
                box.left < frame.left - 2 ||
                box.right > frame.right + 2 ||
                box.top < frame.top - 2 ||
                box.bottom > frame.bottom + 2
              );
            })
            .map((part) => part.outerHTML.slice(0, 80));
        }),
      );
      expect(outside).toEqual([]);
      const isHidden = await page.evaluate(
        `[...document.querySelectorAll('path.line')].some((line) => getComputedStyle(line).stroke === 'none')`,
      );
      expect(isHidden).toBe(false);
      expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
      expect(await page.textContent('h1')).toBe(`A run ${HOSTILE}`);
      const scroll = await page.evaluate('document.documentElement.scrollWidth');
      expect(scroll).toBeLessThanOrEqual(1280);
    },
    60_000,
  );

  test('on a telephone nothing is wider than it', async () => {
    const url = written('phone.html', comparisonReport(runOfSeconds(300), runOfSeconds(300, 2)));
    const { page, problems: faults } = await openPage({ width: 390, height: 800 });
    await page.goto(url);
    expect(faults).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    expect(await page.$$eval('path.dashed', (lines) => lines.length)).toBeGreaterThan(5);
  }, 120_000);
});
