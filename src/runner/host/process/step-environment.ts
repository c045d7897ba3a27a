/**
 * What a step may see of the environment of the runner itself. Everything else, tokens, keys and cloud
 * credentials above all, stays with the runner; secrets reach a step through expressions only.
 */
const PASSED_NAMES: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'USER',
  'LOGNAME',
  'SHELL',
]);
const PASSED_PREFIX = 'LC_';

/** Names that a step may not set for later ones: they load code into every Node process. */
const BLOCKED_NAMES: ReadonlySet<string> = new Set(['NODE_OPTIONS']);

/** The allowed part of `env`, with CI=true and TERM=dumb. A new object; O(variables). */
export function baseEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const base: Record<string, string> = { TERM: 'dumb', CI: 'true' };
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && (PASSED_NAMES.has(name) || name.startsWith(PASSED_PREFIX))) {
      base[name] = value;
    }
  }
  return base;
}

/** Whether GITHUB_ENV and set-env refuse `name`. Letter case does not count, as on GitHub. */
export function isBlockedName(name: string): boolean {
  return BLOCKED_NAMES.has(name.toUpperCase());
}

/** Whether setting `name` for later steps loads foreign code into their programs: worth a warning. */
export function isSuspiciousName(name: string): boolean {
  return name === 'LD_PRELOAD' || name === 'LD_LIBRARY_PATH' || name.startsWith('DYLD_');
}
