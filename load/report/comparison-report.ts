import { unpackHistogram } from '../drive/latency-histogram.ts';
import { percentilesOf } from '../drive/run-counts.ts';
import type { RunResult } from '../drive/run-result.ts';
import { escapeHtml, formatNumber } from './chart.ts';
import { reportPage } from './report-page.ts';
import { runCharts } from './run-charts.ts';
import { totalsOf, warningsOf } from './run-report.ts';

/** One figure of two runs. */
export type Difference = {
  readonly name: string;
  readonly before: number;
  readonly after: number;
  /** Of `before`; NaN where that is 0. */
  readonly percent: number;
  /** Whether more of it is worse. */
  readonly isCost: boolean;
};

/** The figures of two runs beside each other: of the whole, then of each operation in a stage that both have. */
export function differencesOf(before: RunResult, after: RunResult): readonly Difference[] {
  const difference = (name: string, a: number, b: number, isCost: boolean): Difference => ({
    name,
    before: a,
    after: b,
    percent: a === 0 ? Number.NaN : (100 * (b - a)) / a,
    isCost,
  });
  const [a, b] = [totalsOf(before), totalsOf(after)];
  const [la, lb] = [before, after].map((run) => percentilesOf(unpackHistogram(run.latencies)));
  const whole = [
    difference('answered a second', a.perSecond, b.perSecond, false),
    difference('refused', a.refused, b.refused, true),
    difference('wrong', a.wrong, b.wrong, true),
    ...(la === undefined || lb === undefined
      ? []
      : [
          difference('p50 ms', la.p50, lb.p50, true),
          difference('p99 ms', la.p99, lb.p99, true),
          difference('p99.9 ms', la.p999, lb.p999, true),
          difference('slowest ms', la.max, lb.max, true),
        ]),
    ...(cpuOf(before) === undefined || cpuOf(after) === undefined
      ? []
      : [difference('service, CPU ms for a request', cpuOf(before) ?? 0, cpuOf(after) ?? 0, true)]),
  ];
  const parts = before.operations.flatMap((one) => {
    const other = after.operations.find(
      ({ stage, operation }) => stage === one.stage && operation === one.operation,
    );
    if (other === undefined) return [];
    const name = `${one.stage}, ${one.operation}: `;
    return [
      difference(`${name}a second`, one.perSecond, other.perSecond, false),
      difference(`${name}p50 ms`, one.latencies.p50, other.latencies.p50, true),
      difference(`${name}p99 ms`, one.latencies.p99, other.latencies.p99, true),
    ];
  });
  return [...whole, ...parts];
}

/** Both runs in the same charts, the first dashed, and their figures with the change. */
export function comparisonReport(before: RunResult, after: RunResult): string {
  const rows = differencesOf(before, after).map(
    ({ name, before: a, after: b, percent, isCost }) => {
      const isWorse = percent > 0 === isCost;
      const tone =
        Math.abs(percent) < 5 || Number.isNaN(percent) ? '' : isWorse ? 'worse' : 'better';
      const change = Number.isNaN(percent)
        ? '–'
        : `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
      return `<tr><td class="name">${escapeHtml(name)}</td><td>${formatNumber(a)}</td><td>${formatNumber(b)}</td><td class="${tone}">${change}</td></tr>`;
    },
  );
  const warnings = [
    ...(isSamePlan(before, after) ? [] : ['The two runs asked different things: see their plans.']),
    ...warningsOf(before).map((text) => `A: ${text}`),
    ...warningsOf(after).map((text) => `B: ${text}`),
  ];
  const line = (label: string, run: RunResult): string =>
    `<p class="where">${label}: ${escapeHtml(run.title)} · ${escapeHtml(run.target)} · ${escapeHtml(run.startedAt)}</p>`;
  const body = `<h1>Two runs compared</h1>${line('A (dashed)', before)}${line('B', after)}
${warnings.length === 0 ? '' : `<ul class="warnings">${warnings.map((text) => `<li>${escapeHtml(text)}</li>`).join('')}</ul>`}
<h2>Figures</h2><div class="table"><table><thead><tr><th class="name"></th><th>A</th><th>B</th><th>B against A</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>
<h2>Over time</h2><div class="charts">${runCharts([
    { run: before, label: 'A', isDashed: true },
    { run: after, label: 'B', isDashed: false },
  ])}</div>`;
  return reportPage('Two runs compared', body, undefined);
}

function isSamePlan(a: RunResult, b: RunResult): boolean {
  return JSON.stringify([a.plan, a.replay]) === JSON.stringify([b.plan, b.replay]);
}

function cpuOf(run: RunResult): number | undefined {
  const cores = run.server.flatMap(({ cpuCores }) => (cpuCores === undefined ? [] : [cpuCores]));
  const { perSecond } = totalsOf(run);
  if (cores.length === 0 || perSecond === 0) return undefined;
  return (1000 * cores.reduce((a, b) => a + b, 0)) / cores.length / perSecond;
}
