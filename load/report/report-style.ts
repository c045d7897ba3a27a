/** The look of a report: light and dark, on paper and on a telephone. Nothing is loaded from anywhere. */
export const REPORT_STYLE = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--soft:#5c6570;--line:#e2e6ea;--card:#f7f8fa;--warn:#9a3b00;--warnbg:#fff3e8;
--t0:#1f77b4;--t1:#d9730d;--t2:#2e8b57;--t3:#c22f4a;--t4:#7a52c7;--t5:#8a6d3b;--t6:#0d9aa6;--t7:#6b7280}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6e9ed;--soft:#9aa4b0;--line:#2b323a;--card:#1b2027;--warn:#ffb37a;--warnbg:#33231a;
--t0:#6cb6ff;--t1:#ff9d4d;--t2:#5fd08f;--t3:#ff7b93;--t4:#b79bff;--t5:#d9b877;--t6:#4fd3dd;--t7:#a5adb8}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1680px;padding:24px;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:32px 0 10px}
.where{color:var(--soft);margin:4px 0 20px;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0;padding:0}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.figures dt{color:var(--soft);font-size:13px}.figures dd{margin:0;font-size:21px;font-variant-numeric:tabular-nums}
.figures small{display:block;color:var(--soft);font-size:12px}
.warnings{border:1px solid var(--warn);background:var(--warnbg);color:var(--warn);border-radius:8px;padding:10px 14px 10px 32px;margin:18px 0}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px}
figcaption{font-weight:600}figcaption span{font-weight:400;color:var(--soft)}
svg{display:block;width:100%;height:auto}
text{fill:var(--soft);font-size:11px;font-family:inherit;text-anchor:middle}text.y{text-anchor:end}text.band-name{fill:var(--fg)}
.grid,.mark{stroke:var(--line)}.band0{fill:transparent}.band1{fill:var(--line);opacity:.45}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:6px 0 0;padding:0;font-size:13px}
.legend i{display:inline-block;width:18px;border-top:3px solid;margin-right:6px;vertical-align:middle}.legend i.dashed{border-top-style:dashed}
${Array.from({ length: 8 }, (_, i) => `.line.t${i}{stroke:var(--t${i})}.dot.t${i}{fill:var(--t${i})}.legend .t${i}{border-color:var(--t${i})}`).join('')}
.none{color:var(--soft)}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th{color:var(--soft);font-weight:600;font-size:13px}th.name,td.name{text-align:left}
.worse{color:var(--t3)}.better{color:var(--t2)}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;overflow-x:auto;font-size:13px;white-space:pre-wrap}
@media print{body{max-width:none;padding:0}figure{break-inside:avoid}}
`;
