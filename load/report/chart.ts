export type Point = readonly [x: number, y: number];

/** One line of a chart; `tone` chooses its colour (0 to 7), dashed where it is the other run's. */
export type Series = {
  readonly name: string;
  readonly tone: number;
  readonly isDashed?: boolean;
  readonly points: readonly Point[];
};

export type ChartOptions = {
  readonly title: string;
  /** What the y axis counts. */
  readonly unit: string;
  readonly series: readonly Series[];
  readonly isLog?: boolean;
  /** Stretches of the x axis with names. */
  readonly bands?: readonly { readonly name: string; readonly from: number; readonly to: number }[];
  /** What is said where no series has a point. */
  readonly none?: string;
  /** Marks of the x axis; evenly spaced numbers with 's' where absent. */
  readonly xTicks?: readonly { readonly x: number; readonly label: string }[];
};

const [WIDTH, HEIGHT] = [760, 280];
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 30, 26, 30];
const POINTS_MAX = 600;

/** Text that may stand anywhere in HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** A number for people: three digits, and no exponent where it can be avoided. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en-GB');
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return size === 0 ? '0' : value.toFixed(size >= 1 ? 2 : 3);
}

/** A line chart as inline SVG with a legend. What has no points is left out; a chart without any says so. */
export function lineChart(options: ChartOptions): string {
  const series = options.series
    .map((one) => ({ ...one, points: thin(visible(one.points, options.isLog ?? false)) }))
    .filter(({ points }) => points.length > 0);
  const caption = `<figcaption>${escapeHtml(options.title)} <span>${escapeHtml(options.unit)}</span></figcaption>`;
  if (series.length === 0)
    return `<figure>${caption}<p class="none">${escapeHtml(options.none ?? 'Nothing was measured.')}</p></figure>`;
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const xMax = Math.max(...xs, ...(options.bands ?? []).map(({ to }) => to));
  const xMin = Math.min(...xs, 0);
  const yScale = scaleOf(series, options.isLog ?? false);
  const x = (value: number): number =>
    LEFT + ((value - xMin) / Math.max(1e-9, xMax - xMin)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - yScale.at(value) * (HEIGHT - TOP - BOTTOM);
  const bands = (options.bands ?? []).map(({ name, from, to }, i) => {
    const [left, width] = [x(from), x(to) - x(from)];
    const label =
      width > 40
        ? `<text class="band-name" x="${px(left + width / 2)}" y="${TOP - 8}">${escapeHtml(cut(name, width))}</text>`
        : '';
    return `<rect class="band${i % 2}" x="${px(left)}" y="${TOP}" width="${px(width)}" height="${HEIGHT - TOP - BOTTOM}"/>${label}`;
  });
  const yTicks = yScale.ticks.map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${px(y(value))}" y2="${px(y(value))}"/><text class="tick y" x="${LEFT - 7}" y="${px(y(value) + 4)}">${formatNumber(value)}</text>`,
  );
  const ticks =
    options.xTicks ?? evenTicks(xMin, xMax, 8).map((at) => ({ x: at, label: `${at} s` }));
  const xTicks = ticks.map(
    (tick) =>
      `<line class="mark" x1="${px(x(tick.x))}" x2="${px(x(tick.x))}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM + 4}"/><text class="tick" x="${px(x(tick.x))}" y="${HEIGHT - BOTTOM + 17}">${escapeHtml(tick.label)}</text>`,
  );
  const lines = series.map(({ tone, isDashed, points }) => {
    const classes = `line t${tone % 8}${isDashed === true ? ' dashed' : ''}`;
    if (points.length === 1) {
      const [only] = points as readonly [Point];
      return `<circle class="dot t${tone % 8}" cx="${px(x(only[0]))}" cy="${px(y(only[1]))}" r="3"/>`;
    }
    const path = points.map(([px1, py1]) => `${px(x(px1))} ${px(y(py1))}`).join('L');
    return `<path class="${classes}" d="M${path}"/>`;
  });
  const legend = series
    .map(
      ({ name, tone, isDashed }) =>
        `<li><i class="t${tone % 8}${isDashed === true ? ' dashed' : ''}"></i>${escapeHtml(name)}</li>`,
    )
    .join('');
  return `<figure>${caption}<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(options.title)}">${[...bands, ...yTicks, ...xTicks, ...lines].join('')}</svg><ul class="legend">${legend}</ul></figure>`;
}

const px = (value: number): string => value.toFixed(1);

function cut(name: string, width: number): string {
  const room = Math.floor(width / 7);
  return name.length <= room ? name : `${name.slice(0, Math.max(1, room - 1))}…`;
}

/** A logarithm has no place for zero. */
function visible(points: readonly Point[], isLog: boolean): readonly Point[] {
  return points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y) && (!isLog || y > 0));
}

/** Of more points than a screen has the highest of each group, so that no peak is lost. */
function thin(points: readonly Point[]): readonly Point[] {
  if (points.length <= POINTS_MAX) return points;
  const size = Math.ceil(points.length / POINTS_MAX);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, i) =>
    points
      .slice(i * size, (i + 1) * size)
      .reduce((highest, point) => (point[1] > highest[1] ? point : highest)),
  );
}

type Scale = { readonly ticks: readonly number[]; at(value: number): number };

function scaleOf(series: readonly Series[], isLog: boolean): Scale {
  const values = series.flatMap(({ points }) => points.map(([, y]) => y));
  const highest = values.reduce((a, b) => Math.max(a, b), 0);
  if (!isLog) {
    const ticks = evenTicks(0, highest === 0 ? 1 : highest * 1.05, 6);
    const top = Math.max(ticks.at(-1) ?? 1, highest);
    return { ticks, at: (value) => value / top };
  }
  const lowest = values.reduce((a, b) => Math.min(a, b), highest);
  const [from, to] = [Math.floor(Math.log10(lowest)), Math.ceil(Math.log10(highest * 1.01))];
  const span = Math.max(1, to - from);
  const ticks = Array.from({ length: span + 1 }, (_, i) => 10 ** (from + i));
  const between = span <= 3 ? ticks.slice(0, -1).flatMap((tick) => [2 * tick, 5 * tick]) : [];
  return {
    ticks: [...ticks, ...between],
    at: (value) => (Math.log10(value) - from) / span,
  };
}

/** About `count` round numbers from `from` to at least `to`. */
function evenTicks(from: number, to: number, count: number): readonly number[] {
  const rough = Math.max(1e-9, to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= rough) ?? power * 10;
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}
