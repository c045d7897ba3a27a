import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { unpackHistogram } from '../drive/latency-histogram.ts';
import type { RunResult } from '../drive/run-result.ts';
import { type Table, comparisonTable, runTable, serviceLine, warningsOf } from './figures.ts';

/** A run and its name beside another one: empty where there is one alone. */
export type LabelledRun = { readonly label: string; readonly run: RunResult };

const DATA = '<script type="application/json" id="gatehouse-load">';
const STYLE = `
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1200px;padding:20px;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
.warnings{border:1px solid;border-radius:8px;padding:10px 32px;color:light-dark(#9a3b00,#ffb37a)}
.table{overflow-x:auto}table.figures{border-collapse:collapse;font-variant-numeric:tabular-nums}
.figures th,.figures td{padding:4px 10px;border-bottom:1px solid #8884;text-align:right;white-space:nowrap}
.figures :first-child{text-align:left}
pre{white-space:pre-wrap}
`;

/** One page without a request of its own: the figures as tables, and charts where scripts run. Two runs are drawn over each other. */
export function reportPage(runs: readonly LabelledRun[]): string {
  const [library, charts] = [
    readFileSync(new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')), 'utf8'),
    readFileSync(new URL('charts.mjs', import.meta.url), 'utf8'),
  ];
  const css = `${readFileSync(new URL(import.meta.resolve('uplot/dist/uPlot.min.css')), 'utf8')}${STYLE}`;
  const scripts = [library, charts];
  const policy = `default-src 'none'; base-uri 'none'; form-action 'none'; style-src ${hashOf(css)}; script-src ${scripts.map(hashOf).join(' ')}`;
  const data = runs.map(({ label, run }) => ({ label, run, distribution: distributionOf(run) }));
  const title = runs.map(({ run }) => run.title).join(' – ');
  const [first, second] = runs;
  const compared =
    first === undefined || second === undefined
      ? ''
      : `<h2>A ${escapeHtml(first.label)}, B ${escapeHtml(second.label)}</h2>${htmlTable(comparisonTable(first.run, second.run))}`;
  const isDifferent =
    JSON.stringify(first?.run.plan) !== JSON.stringify((second ?? first)?.run.plan);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escapeHtml(title)}</title><style>${css}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${isDifferent ? '<p class="warnings">The two runs asked different things: see their plans.</p>' : ''}
${compared}<div id="charts"></div><noscript><p>Charts need scripts.</p></noscript>
${runs.map(sectionOf).join('\n')}
${DATA}${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
<script>${library}</script><script type="module">${charts}</script></body></html>
`;
}

function sectionOf({ label, run }: LabelledRun): string {
  const { title, target, startedAt, generators, replay, plan, failures } = run;
  const warnings = warningsOf(run).map((warning) => `<li>${escapeHtml(warning)}</li>`);
  const reasons = new Map<string, number>();
  for (const [why, count] of run.seconds.flatMap(({ refused }) => Object.entries(refused))) {
    reasons.set(why, (reasons.get(why) ?? 0) + count);
  }
  const refusals = [...reasons].map(([why, count]) => [why, String(count)]);
  const asked = replay && `recorded questions, speed ${replay.speed}, each ${replay.repeat} times`;
  const facts = [title, target, startedAt, `${generators} generators`, asked, serviceLine(run)];
  return `<h2>${escapeHtml(label === '' ? 'Figures' : label)}</h2>
<p>${escapeHtml(facts.filter((fact) => fact !== undefined).join(' · '))}</p>
${warnings.length === 0 ? '' : `<ul class="warnings">${warnings.join('')}</ul>`}
${htmlTable(runTable(run))}
${refusals.length === 0 ? '' : htmlTable([['refused', 'requests'], ...refusals])}
${failures.length === 0 ? '' : `<h3>First wrong answers</h3><pre>${escapeHtml(failures.join('\n'))}</pre>`}
${plan === undefined ? '' : `<details><summary>Plan</summary><pre>${escapeHtml(JSON.stringify(plan, null, 1))}</pre></details>`}`;
}

/** Percentiles of all answers in ms, by their nines, up to one in as many as there are. */
function distributionOf(run: RunResult): readonly [readonly number[], readonly number[]] {
  const histogram = unpackHistogram(run.latencies);
  const count = Math.floor(Math.log10(histogram.count + 1) * 50) + 1;
  const nines = Array.from({ length: count }, (_, i) => i / 50);
  return [nines, nines.map((at) => histogram.percentile(100 - 100 / 10 ** at))];
}

/** The run that a report holds, or that a JSON file is. Errors: throws what it is instead. */
export function runOf(text: string, name: string): RunResult {
  const from = text.indexOf(DATA);
  const json = from < 0 ? text : text.slice(from + DATA.length, text.indexOf('</script>', from));
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Error(`${name} is neither a report of a run nor its JSON`);
  }
  // Reports of the release before hold the run itself.
  if (Array.isArray(value)) {
    const runs = value as readonly LabelledRun[];
    if (runs.length > 1) throw new Error(`${name} compares two runs: one is meant`);
    value = runs[0]?.run;
  }
  const run = value as Partial<RunResult> | null | undefined;
  if (run?.format === 'gatehouse-load/1') return value as RunResult;
  throw new Error(`${name} is no run that this release knows`);
}

function htmlTable([head = [], ...rows]: Table): string {
  const cells = (row: readonly string[], tag: string): string =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  return `<div class="table"><table class="figures"><thead>${cells(head, 'th')}</thead><tbody>${rows.map((row) => cells(row, 'td')).join('')}</tbody></table></div>`;
}

/** Text that may stand anywhere in HTML. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
