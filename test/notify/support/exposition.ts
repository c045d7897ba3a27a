/** A strict reader of the text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). */

export type Sample = {
  /** Name and labels as written. */
  readonly series: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};
export type MetricFamily = {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
};

const NAME = '[a-zA-Z_][a-zA-Z0-9_]*';
const LABEL = `${NAME}="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (-?[0-9.e+-]+|[+-]?Inf|NaN)$`,
);
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
};
/** What promtool's linter refuses in names. */
const BAD_UNITS = /_(?:ms|millis|milliseconds|sec|secs|min|minutes|hours|kb|mb|bits)(?:_|$)/;

type Growing = { type: string; help: string; samples: Sample[] };

/** Families by name. Errors: throws on whatever a strict scraper or promtool's linter would refuse. */
export function parseExposition(text: string): ReadonlyMap<string, MetricFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, Growing>();
  const seen = new Set<string>();
  let current: [string, Growing] | undefined;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const meta = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (meta !== null) {
      current = [meta[2] as string, familyOf(families, current?.[0], meta)];
      continue;
    }
    const sample = sampleOf(line);
    if (current === undefined) throw new Error(`no family: ${line}`);
    const [family, growing] = current;
    const suffixes = SUFFIXES[growing.type] ?? [];
    if (!suffixes.some((suffix) => sample.name === family + suffix)) {
      throw new Error(`not of ${family}: ${line}`);
    }
    if (seen.has(sample.series)) throw new Error(`twice: ${line}`);
    seen.add(sample.series);
    growing.samples.push(sample);
  }
  for (const [name, family] of families) checkFamily(name, family);
  return families;
}

function familyOf(
  families: Map<string, Growing>,
  current: string | undefined,
  [line, kind, name = '', rest = '']: RegExpExecArray,
): Growing {
  const known = families.get(name);
  if (known !== undefined && current !== name) throw new Error(`apart from its family: ${line}`);
  const family = known ?? { type: '', help: '', samples: [] };
  families.set(name, family);
  if (family.samples.length > 0) throw new Error(`after samples: ${line}`);
  if (kind === 'TYPE') family.type = rest;
  else family.help = rest;
  return family;
}

function sampleOf(line: string): Sample & { readonly name: string } {
  const found = SAMPLE.exec(line);
  if (found === null) throw new Error(`not a sample: ${line}`);
  const [, name = '', labelText = '', value = ''] = found;
  const labels: Record<string, string> = {};
  for (const [one] of labelText.matchAll(new RegExp(LABEL, 'g'))) {
    const at = one.indexOf('=');
    const key = one.slice(0, at);
    if (key in labels) throw new Error(`label twice: ${line}`);
    labels[key] = one
      .slice(at + 2, -1)
      .replaceAll(/\\(["\\n])/g, (_escape, character: string) =>
        character === 'n' ? '\n' : character,
      );
  }
  const number = value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value);
  if (Number.isNaN(number) && value !== 'NaN') throw new Error(`no number: ${line}`);
  return { name, series: line.slice(0, line.lastIndexOf(' ')), labels, value: number };
}

function checkFamily(name: string, { type, help, samples }: Growing): void {
  if (!(type in SUFFIXES)) throw new Error(`${name} has the type ${JSON.stringify(type)}`);
  if (help === '') throw new Error(`${name} has no HELP`);
  if ((type === 'counter') !== name.endsWith('_total')) throw new Error(`${name} is a ${type}`);
  if (BAD_UNITS.test(name) || /[A-Z]/.test(name)) throw new Error(`${name} is named badly`);
  if (type !== 'histogram') {
    if (samples.some(({ labels }) => 'le' in labels)) throw new Error(`${name} has le`);
    return;
  }
  let before = 0;
  let count = 0;
  for (const { series, labels, value } of samples) {
    if (series.startsWith(`${name}_bucket`)) {
      if (value < before) throw new Error(`${series} is not cumulative`);
      before = labels['le'] === '+Inf' ? 0 : value;
      if (labels['le'] === '+Inf') count = value;
    } else if (series.startsWith(`${name}_count`) && value !== count) {
      throw new Error(`${series} is not the last bucket`);
    }
  }
}
