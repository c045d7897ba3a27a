import { unpackHistogram } from '../drive/latency-histogram.ts';
import { percentilesOf } from '../drive/run-counts.ts';
import type { OperationTotal, RunResult } from '../drive/run-result.ts';
import { escapeHtml, formatNumber } from './chart.ts';
import { reportPage } from './report-page.ts';
import { runCharts } from './run-charts.ts';

/** The report of one run: one HTML file, which holds the run's figures for later comparisons. */
export function runReport(run: RunResult): string {
  const warnings = warningsOf(run);
  const body = `<h1>${escapeHtml(run.title)}</h1>
<p class="where">${escapeHtml(run.target)} · ${escapeHtml(run.startedAt)} · ${run.generators} generator${run.generators === 1 ? '' : 's'}${run.replay === undefined ? '' : ` · recorded questions, speed ${run.replay.speed}, each ${run.replay.repeat} times`}</p>
${warnings.length === 0 ? '' : `<ul class="warnings">${warnings.map((text) => `<li>${escapeHtml(text)}</li>`).join('')}</ul>`}
${figures(run)}
<h2>Over time</h2><div class="charts">${runCharts([{ run, label: '', isDashed: false }])}</div>
<h2>By stage and operation</h2>${operationsTable(run.operations)}
${run.failures.length === 0 ? '' : `<h2>First wrong answers</h2><pre>${run.failures.map(escapeHtml).join('\n')}</pre>`}
${run.plan === undefined ? '' : `<h2>Plan</h2><pre>${escapeHtml(JSON.stringify(run.plan, null, 1))}</pre>`}`;
  return reportPage(run.title, body, run);
}

export type Totals = {
  readonly asked: number;
  readonly answered: number;
  readonly refused: number;
  readonly wrong: number;
  readonly notSent: number;
  readonly perSecond: number;
};

export function totalsOf({ seconds }: RunResult): Totals {
  const sum = (of: (second: RunResult['seconds'][number]) => number): number =>
    seconds.reduce((total, second) => total + of(second), 0);
  const answered = sum((second) => second.answered);
  return {
    asked: sum(({ offered }) => offered),
    answered,
    refused: sum(({ refused }) => Object.values(refused).reduce((a, b) => a + b, 0)),
    wrong: sum(({ wrong }) => wrong),
    notSent: sum(({ notSent }) => notSent),
    perSecond: answered / Math.max(1, seconds.length),
  };
}

function figures(run: RunResult): string {
  const { asked, answered, refused, wrong, perSecond } = totalsOf(run);
  const latencies = percentilesOf(unpackHistogram(run.latencies));
  const cores = run.server.flatMap(({ cpuCores }) => (cpuCores === undefined ? [] : [cpuCores]));
  const mean = cores.reduce((a, b) => a + b, 0) / cores.length;
  const one = (name: string, value: string, note = ''): string =>
    `<div><dt>${name}</dt><dd>${value}${note === '' ? '' : `<small>${note}</small>`}</dd></div>`;
  return `<dl class="figures">${[
    one('answered', formatNumber(answered), `of ${formatNumber(asked)} asked`),
    one('a second', formatNumber(perSecond), `over ${run.seconds.length} s`),
    one('refused', formatNumber(refused), percentText(refused, asked)),
    one('wrong answers', formatNumber(wrong)),
    one('p50', `${formatNumber(latencies.p50)} ms`),
    one('p99', `${formatNumber(latencies.p99)} ms`, `p99.9 ${formatNumber(latencies.p999)} ms`),
    one('slowest', `${formatNumber(latencies.max)} ms`),
    ...(cores.length === 0 ? [] : [one('service', `${formatNumber(mean)} cores`, 'on average')]),
    one(
      'generators',
      `${formatNumber(run.generatorCpuCores)} cores`,
      `sent late p99 ${formatNumber(run.sentLateP99Ms)} ms`,
    ),
  ].join('')}</dl>`;
}

function percentText(part: number, whole: number): string {
  return whole === 0 ? '' : `${formatNumber((100 * part) / whole)} %`;
}

/** What a reader should know before believing the figures. */
export function warningsOf(run: RunResult): string[] {
  const { wrong, notSent } = totalsOf(run);
  const { p99 } = percentilesOf(unpackHistogram(run.latencies));
  return [
    ...(wrong > 0 ? [`${wrong} answers were wrong: see below, and stop here.`] : []),
    ...(run.isWhole ? [] : ['The run was ended before its time.']),
    ...(notSent > 0
      ? [
          `${notSent} requests were due and not sent, since too many were open: the service, or the way to it, is saturated.`,
        ]
      : []),
    ...(run.generatorCpuCores > 0.85 * run.generators
      ? [
          'The generators were busy all the time: what is measured is they. Use more of them (--generators), on processors of their own.',
        ]
      : []),
    ...(run.sentLateP99Ms > Math.max(5, p99 / 3)
      ? [
          `The generators sent late by ${formatNumber(run.sentLateP99Ms)} ms (p99), which the latencies include.`,
        ]
      : []),
    ...(run.server.length === 0
      ? ['Without --metrics-url nothing is known of the service itself.']
      : []),
  ];
}

function operationsTable(operations: readonly OperationTotal[]): string {
  const cell = (value: number): string => `<td>${formatNumber(value)}</td>`;
  const rows = operations.map(
    ({ stage, operation, answered, perSecond, refused, wrong, latencies }) =>
      `<tr><td class="name">${escapeHtml(stage)}</td><td class="name">${escapeHtml(operation)}</td>${[answered, perSecond, refused, wrong, latencies.p50, latencies.p90, latencies.p99, latencies.p999, latencies.max].map(cell).join('')}</tr>`,
  );
  return `<div class="table"><table><thead><tr><th class="name">stage</th><th class="name">operation</th><th>answered</th><th>a second</th><th>refused</th><th>wrong</th><th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>p99.9 ms</th><th>max ms</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}
