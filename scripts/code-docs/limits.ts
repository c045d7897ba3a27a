import type { OptionTable } from '../../src/config/option.ts';
import type { SourceFile } from './invariants.ts';
import type { LimitRow } from './limit-table.ts';

const PLACE = /\{([\w./-]+)\}/g;
const KIB = 1_024;
const UNITS: readonly (readonly [number, string])[] = [
  [KIB ** 3, 'GiB'],
  [KIB ** 2, 'MiB'],
  [KIB, 'KiB'],
];

/**
 * docs/limits.md: the rows, with every figure taken from where the code defines it. Errors: throws for a
 * setting or name that is not there, one that is there twice, and a figure that comes from nowhere.
 */
export function limitsMarkdown(
  rows: readonly LimitRow[],
  options: OptionTable,
  sources: readonly SourceFile[],
): string {
  const table = rows.map(({ what, limit, beyond }) => {
    const cells = [what, limit].map((cell) => {
      const bare = cell.replaceAll(PLACE, '').replaceAll(/HTTP\/\d(\.\d)?/g, '');
      if (/\d/.test(bare)) throw new Error(`a figure that is not from the code: ${cell}`);
      return cell.replaceAll(PLACE, (_, name: string) =>
        name.startsWith('GATEWAY_') ? settingText(options, name) : constantText(sources, name),
      );
    });
    return `| ${[...cells, beyond].join(' | ')} |`;
  });
  return [
    '# Limits',
    '',
    'What bounds what a caller, a tenant or a peer can make the authorization service do or hold, and what happens beyond it.',
    'Figures come from the code and from the defaults of [settings](configuration.md): `npm run docs:code` writes this file from',
    '`scripts/code-docs/limit-table.ts`.',
    '',
    '| what | limit | beyond it |',
    '|---|---|---|',
    ...table,
    '',
  ].join('\n');
}

function settingText(options: OptionTable, env: string): string {
  const option = Object.values(options).find((one) => one.env === env);
  if (option === undefined) throw new Error(`there is no setting ${env}`);
  const text = option.fallbackText;
  return `\`${env}\`, ${/^\d+$/.test(text) ? amount(Number(text), option.unit) : text}`;
}

/** `file.NAME`: the value of a constant or property of the one file of that name that defines it. */
function constantText(sources: readonly SourceFile[], place: string): string {
  const dot = place.lastIndexOf('.');
  const [file, name] = [place.slice(0, dot), place.slice(dot + 1)];
  const definition = new RegExp(`\\b${name}(?: =|:) ([\\d_.]+(?: \\* [\\d_.]+)*)[;,\\s}]`);
  const found = sources
    .filter(({ path }) => path.endsWith(`/${file}.ts`))
    .flatMap(({ text }) => definition.exec(text)?.[1] ?? []);
  if (found.length !== 1) throw new Error(`${place} is defined ${found.length} times`);
  const value = (found[0] ?? '')
    .split(' * ')
    .reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1);
  return amount(value, unitOf(name));
}

function unitOf(name: string): string {
  if (/bytes/i.test(name)) return 'bytes';
  return /(?:_MS|Ms)(?:_MAX)?$/.test(name) ? 'milliseconds' : '';
}

/** A number with its unit, as people read it: `8 MiB`, `30 s`, `1,000`. */
function amount(value: number, unit: string): string {
  const number = value.toLocaleString('en-US');
  if (unit === 'bytes') {
    const [size, name] = UNITS.find(([bytes]) => value >= bytes && value % bytes === 0) ?? [
      1,
      'bytes',
    ];
    return `${(value / size).toLocaleString('en-US')} ${name}`;
  }
  if (unit === 'milliseconds') return value % 1_000 === 0 ? `${value / 1_000} s` : `${number} ms`;
  if (unit === 'seconds') return value % 3_600 === 0 ? `${value / 3_600} h` : `${number} s`;
  return number;
}
