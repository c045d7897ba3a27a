import type { RunResult } from '../drive/run-result.ts';
import { escapeHtml } from './chart.ts';
import { REPORT_STYLE } from './report-style.ts';
import { thinned } from './thinned.ts';

/** What a report may weigh: something to attach to a mail. */
export const REPORT_BYTES_MAX = 2_000_000;
const DATA_ID = 'gatehouse-load';

/** One page without any request of its own: no script runs in it, and what stands in it is text. */
export function reportPage(title: string, body: string, data: RunResult | undefined): string {
  const json =
    data === undefined
      ? ''
      : `<script type="application/json" id="${DATA_ID}">${JSON.stringify(thinned(data)).replaceAll('<', '\\u003c')}</script>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title><style>${REPORT_STYLE}</style></head>
<body>${body}${json}</body></html>
`;
}

/** The run that a report holds, or that a JSON file is. Errors: throws what it is instead. */
export function runOf(text: string, name: string): RunResult {
  const marked = `<script type="application/json" id="${DATA_ID}">`;
  const from = text.indexOf(marked);
  const json = from < 0 ? text : text.slice(from + marked.length, text.indexOf('</script>', from));
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Error(`${name} is neither a report of a run nor its JSON`);
  }
  const { format } = value as Partial<RunResult>;
  if (format !== 'gatehouse-load/1') throw new Error(`${name} is no run that this release knows`);
  return value as RunResult;
}
