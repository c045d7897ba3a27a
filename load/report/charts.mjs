// Draws the charts of a report in the browser; page.ts writes it into the page after uPlot, whose global it uses.
const { uPlot } = globalThis;
const runs = JSON.parse(document.getElementById('gatehouse-load').textContent);
const place = document.getElementById('charts');
const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
const [ink, rule] = isDark ? ['#9aa4b0', '#2b323a'] : ['#5c6570', '#e2e6ea'];
const COLOURS = ['#1f77b4', '#d9730d', '#2e8b57', '#c22f4a', '#7a52c7'];
const stages = runs.at(-1).run.stages;

/** A line of a figure over the seconds of a run. */
const over = (part, label, of) => ({
  label,
  points: ({ run }) => [run[part].map(({ second }) => Math.floor(second)), run[part].map(of)],
});
const answer = (label, of) => over('seconds', label, of);
const told = (label, key) => over('server', label, (sample) => sample[key]);
const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);

/** Marks where stages begin. */
function drawStages(plot) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = ink;
  ctx.textAlign = 'left';
  for (const { name, from } of stages) {
    const x = plot.valToPos(from, 'x', true);
    ctx.fillRect(x, bbox.top, 1, bbox.height);
    ctx.fillText(name.slice(0, 20), x + 4, bbox.top + 12);
  }
  ctx.restore();
}

function chart(title, figures, { isLog = false, x = {}, draw = [drawStages] } = {}) {
  const lines = runs.flatMap((one, at) =>
    figures.flatMap(({ label, points }, tone) => {
      const [xs, values] = points(one);
      const ys = values.map((y) => (y === undefined || (isLog && !(y > 0)) ? null : y));
      if (ys.every((y) => y === null)) return [];
      const dash = at === 0 && runs.length > 1 ? [5, 4] : undefined;
      const series = { label: `${one.label} ${label}`.trim(), stroke: COLOURS[tone], dash };
      return [{ series, table: [xs, ys] }];
    }),
  );
  if (lines.length === 0) return;
  const line = { stroke: rule, width: 1 };
  const axis = { stroke: ink, grid: line, ticks: line, size: 60 };
  const size = () => ({ width: place.clientWidth, height: 280 });
  const options = {
    title,
    ...size(),
    scales: {
      x: { time: false },
      y: isLog ? { distr: 3 } : { range: (_, __, max) => [0, max || 1] },
    },
    axes: [{ ...axis, size: 50, ...x }, axis],
    series: [{ label: x.label ?? 'second' }, ...lines.map(({ series }) => series)],
    hooks: { draw },
  };
  const plot = new uPlot(options, uPlot.join(lines.map(({ table }) => table)), place);
  addEventListener('resize', () => plot.setSize(size()));
}

// Of two runs fewer lines, or nobody could tell them apart.
const percentiles = runs.length > 1 ? ['p50', 'p99'] : ['p50', 'p90', 'p99', 'p999', 'max'];
chart(
  'Latency over time, ms',
  percentiles.map((key) => answer(key.replace('p999', 'p99.9'), ({ latencies }) => latencies[key])),
  { isLog: true },
);
chart('Requests a second', [
  answer('asked', ({ offered }) => offered),
  answer('answered', ({ answered }) => answered),
  answer('refused', ({ refused }) => sum(refused)),
  answer('not sent', ({ notSent }) => notSent || undefined),
  answer('WRONG', ({ wrong }) => wrong || undefined),
]);
chart('Latency by percentile, ms', [{ label: 'all', points: ({ distribution }) => distribution }], {
  isLog: true,
  draw: [],
  // Each further nine is as wide as the one before.
  x: {
    label: 'percentile',
    splits: () =>
      [0, 50, 90, 99, 99.9, 99.99, 99.999].map((percent) => -Math.log10(1 - percent / 100)),
    values: (_, at) => at.map((nines) => `${Number((100 - 100 / 10 ** nines).toFixed(3))} %`),
  },
});
chart('Processors of the service, cores busy', [told('service', 'cpuCores')]);
chart('Memory of the service, MiB resident', [told('service', 'residentMib')]);
chart('Waiting in the service, requests', [
  told('for a worker', 'workerQueue'),
  told('writes', 'writeQueue'),
  told('for PostgreSQL', 'poolWaiting'),
]);
chart('Delay of the gateway’s thread, ms (p99)', [told('service', 'loopDelayP99Ms')]);
