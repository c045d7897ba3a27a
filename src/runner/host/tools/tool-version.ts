import { createRequire } from 'node:module';
import type Semver from 'semver';
import { AppError } from '../../../shared/app-error.ts';

let loaded: typeof Semver | undefined;

/** The library for versions: its 47 files are read when a job asks for a tool, and not at the start of each run. */
export function semver(): typeof Semver {
  loaded ??= createRequire(import.meta.url)('semver') as typeof Semver;
  return loaded;
}

/** What a workflow asks for, in the terms of semantic versions. */
export type VersionWish = {
  /** As it was written. */
  readonly text: string;
  /** A range of semver; `*` where anything will do. */
  readonly range: string;
  /** Versions that the range would take and the wish does not. */
  readonly excluded: readonly string[];
  readonly mayBePrerelease: boolean;
  /** Only the newest there is counts, whatever is installed: `latest`. */
  readonly isNewest: boolean;
};

/** A wish for the versions of `range`. Errors: INVALID_VALUE when `range` is none. */
export function wishFor(text: string, range: string, field: string): VersionWish {
  const valid = semver().validRange(range, { loose: true });
  if (valid === null) {
    throw new AppError('INVALID_VALUE', `'${text}' is no version and no range of versions`, {
      field,
    });
  }
  // Asked of what was written: the valid form has marks of its own.
  const mayBePrerelease = /\d-[0-9A-Za-z]/.test(range);
  return { text, range: valid, excluded: [], mayBePrerelease, isNewest: false };
}

export function newestWish(text: string): VersionWish {
  return { text, range: '*', excluded: [], mayBePrerelease: false, isNewest: true };
}

export function satisfies(version: string, wish: VersionWish): boolean {
  const options = { loose: true, includePrerelease: wish.mayBePrerelease };
  return semver().satisfies(version, wish.range, options) && !wish.excluded.includes(version);
}

/** The newest of `versions` that is wished for. */
export function pickVersion(versions: readonly string[], wish: VersionWish): string | undefined {
  return versions
    .filter((version) => semver().valid(version) !== null && satisfies(version, wish))
    .toSorted((a, b) => semver().rcompare(a, b))[0];
}

/** Newest first, each once. */
export function newestFirst(versions: readonly string[]): string[] {
  return [...new Set(versions)].toSorted((a, b) => semver().rcompare(a, b));
}

/**
 * A range of PEP 440 (`>=3.9,<3.13`, `~=3.9`, `==3.12.*`, `!=3.9.1`) in the terms of semver. Poetry's
 * `^3.9` and `~3.9` are semver's own.
 */
export function pythonRange(text: string): { readonly range: string; readonly excluded: string[] } {
  const excluded: string[] = [];
  const parts: string[] = [];
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const [, operator = '', version = ''] = /^(~=|===?|!=|[<>]=?|[~^])?\s*v?(.+)$/.exec(part) ?? [];
    const plain = prereleaseOf(version.trim());
    const wild = plain.replace(/\.\*$/, '');
    if (operator === '!=') excluded.push(fullVersion(wild));
    else if (operator === '~=') parts.push(compatibleRange(wild));
    else if (operator === '==' || operator === '===') {
      parts.push(plain.endsWith('.*') ? `${wild}.x` : `=${fullVersion(plain)}`);
    } else parts.push(`${operator}${plain}`);
  }
  return { range: parts.length === 0 ? '*' : parts.join(' '), excluded };
}

/** `~=3.9` is at least that and the same but for the last part. */
function compatibleRange(version: string): string {
  const numbers = version.split('.');
  const kept = numbers.slice(0, -1).map(Number);
  const last = kept.length - 1;
  const next = kept.map((number, index) => (index === last ? number + 1 : number));
  return kept.length === 0 ? `>=${version}` : `>=${version} <${fullVersion(next.join('.'))}`;
}

function fullVersion(version: string): string {
  if (version.includes('-')) return version;
  const numbers = version.split('.');
  while (numbers.length < 3) numbers.push('0');
  return numbers.join('.');
}

/** `3.13.0rc1`, `3.13.0b2` and `1.22rc1` as semver writes them; other texts as they are. */
export function prereleaseOf(version: string): string {
  const match = /^(\d+(?:\.\d+){0,2})(a|alpha|b|beta|rc)(\d+)$/.exec(version);
  if (match === null) return version;
  const [, numbers = '', stage = '', count = ''] = match;
  const name = stage.startsWith('a') ? 'alpha' : stage.startsWith('b') ? 'beta' : 'rc';
  return `${fullVersion(numbers)}-${name}.${count}`;
}
