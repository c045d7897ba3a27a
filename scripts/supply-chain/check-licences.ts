/**
 * Fails unless every package of package-lock.json and every binary of binaries.json is under a licence of
 * licences.json. Those that are only for development, or beside one database, may not come with the service.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readRecord } from './verify-binaries.mjs';

type Locked = { readonly license?: string; readonly dev?: boolean; readonly version?: string };

const admitted = JSON.parse(
  readFileSync(new URL('licences.json', import.meta.url), 'utf8'),
) as Record<string, string>;
const problems: string[] = [];

/** The licences of an SPDX expression without the words between them: all of them must be admitted. */
function licencesOf(expression: string): string[] {
  return expression.split(/[\s()]+|\bAND\b|\bOR\b|\bWITH\b/).filter((word) => word !== '');
}

function check(what: string, expression: string | undefined, place: 'service' | 'beside'): void {
  if (expression === undefined) problems.push(`${what} states no licence`);
  for (const licence of licencesOf(expression ?? '')) {
    const note = admitted[licence];
    if (note === undefined) problems.push(`${what}: ${licence} is not in licences.json`);
    else if (place === 'service' && note.startsWith('only ')) {
      problems.push(`${what}: ${licence} is admitted ${note}`);
    }
  }
}

const root = new URL('../../', import.meta.url);
const lock = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8')) as {
  readonly packages: Record<string, Locked>;
};
let count = 0;
for (const [path, { license, dev, version }] of Object.entries(lock.packages)) {
  if (path === '') continue;
  count += 1;
  const what = `${path.replace(/^.*node_modules\//, '')}@${version}`;
  check(what, license, dev === true ? 'beside' : 'service');
  // The lock file says what the registry said; the package itself has the word.
  const manifest = new URL(`${path}/package.json`, root);
  if (!existsSync(manifest)) continue;
  const { license: own } = JSON.parse(readFileSync(manifest, 'utf8')) as { license?: unknown };
  if (typeof own === 'string' && own !== license) {
    problems.push(`${what}: package-lock.json says ${license}, its package.json ${own}`);
  }
}
for (const [name, { upstream, bundled = [] }] of Object.entries(readRecord())) {
  check(`${name}: ${upstream.name}`, upstream.licence, 'service');
  for (const library of bundled) check(`${name}: ${library.name}`, library.licence, 'beside');
}
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`);
  process.exitCode = 1;
} else process.stdout.write(`${count} packages under known licences\n`);
