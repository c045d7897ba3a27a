import { newestWish, prereleaseOf, type VersionWish, wishFor } from './tool-version.ts';

const FIELD = 'go-version';

/**
 * What `go-version` asks for: `1.22` (its newest release), `1.22.3`, `1.23rc1`, a range, `stable`,
 * `oldstable`. `releases` are all there are, newest first, as semver; `oldstable` is the line before the
 * newest of them. Errors: INVALID_VALUE.
 */
export function goWish(text: string, releases: readonly string[] = []): VersionWish {
  const wanted = text.trim().replace(/^go(?=\d)/, '');
  if (wanted === 'stable' || wanted === 'latest') return newestWish(text);
  if (wanted === 'oldstable') return wishFor(text, oldLine(releases), FIELD);
  return wishFor(text, prereleaseOf(wanted), FIELD);
}

/** As semver: `go1.22` is 1.22.0, `go1.23rc1` is 1.23.0-rc.1. Undefined for what is no version. */
export function goSemver(version: string): string | undefined {
  const [, numbers, prerelease] = /^go(\d+(?:\.\d+){1,2})((?:beta|rc)\d+)?$/.exec(version) ?? [];
  if (numbers === undefined) return undefined;
  if (prerelease !== undefined) return prereleaseOf(`${numbers}${prerelease}`);
  return numbers.split('.').length === 2 ? `${numbers}.0` : numbers;
}

function oldLine(releases: readonly string[]): string {
  const [newest = '0.0.0'] = releases.filter((version) => !version.includes('-'));
  const [major = 0, minor = 0] = newest.split('.').map(Number);
  return `${major}.${minor - 1}.x`;
}
