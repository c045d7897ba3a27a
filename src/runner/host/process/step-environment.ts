import { delimiter } from 'node:path';

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
/**
 * How this machine reaches others: proxies, certificates and mirrors of package registries. By name alone:
 * names that begin alike hold tokens (CARGO_REGISTRY_TOKEN, UV_PUBLISH_TOKEN).
 */
const NETWORK_NAMES: ReadonlySet<string> = new Set([
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'npm_config_cafile',
  'npm_config_registry',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'PIP_CERT',
  'PIP_INDEX_URL',
  'UV_INDEX_URL',
  'UV_DEFAULT_INDEX',
  'CARGO_HTTP_CAINFO',
  'GOPROXY',
  'GOSUMDB',
  'GOFLAGS',
  'GIT_SSL_CAINFO',
]);

/** Names that a step may not set for later ones: they load code into every Node process. */
const BLOCKED_NAMES: ReadonlySet<string> = new Set(['NODE_OPTIONS']);

/** `user:password` of addresses, also where an address is given without its scheme. */
const USERINFO = /(?:[a-z][a-z0-9+.-]*:\/\/|^(?=[^/@\s]+:[^/@\s]+@))([^/\s?#]*)@/gi;
const NPM_BIN = /[\\/]node_modules[\\/]\.bin$/;
const NPM_GYP = /[\\/]node-gyp-bin$/;

/** What an operator wants steps to get of the runner's environment. */
export type StepVariables = {
  /** Further names. */
  readonly passed?: readonly string[] | undefined;
  /** Instead of the runner's own PATH. */
  readonly path?: string | undefined;
};

export type BaseEnvironment = {
  readonly variables: Readonly<Record<string, string>>;
  /** Those of them that others may see: no user or password in an address, and none passed by name. */
  readonly harmless: Readonly<Record<string, string>>;
  /** Users and passwords in the values, which no log may show. */
  readonly secrets: readonly string[];
};

/** The allowed part of `env`, with CI=true and TERM=dumb. New objects; O(variables). */
export function baseEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  { passed = [], path }: StepVariables = {},
): BaseEnvironment {
  const variables: Record<string, string> = { TERM: 'dumb', CI: 'true' };
  const harmless: Record<string, string> = { ...variables };
  const secrets: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    const isUsual =
      PASSED_NAMES.has(name) || NETWORK_NAMES.has(name) || name.startsWith(PASSED_PREFIX);
    if (value === undefined || !(isUsual || passed.includes(name))) continue;
    const found = credentialsIn(value);
    variables[name] = value;
    if (isUsual && found.length === 0) harmless[name] = value;
    secrets.push(...found);
  }
  const ownPath = path ?? (env['PATH'] === undefined ? undefined : withoutNpm(env['PATH']));
  if (ownPath === undefined) return { variables, harmless, secrets };
  const inPath = { PATH: ownPath };
  return { variables: { ...variables, ...inPath }, harmless: { ...harmless, ...inPath }, secrets };
}

/** The value itself, and who it names: as written and without percent-encoding. */
function credentialsIn(value: string): readonly string[] {
  const found = [...value.matchAll(USERINFO)].flatMap(([, userinfo = '']) => {
    const end = userinfo.indexOf(':');
    // Alone it is a token; beside a password it is a name like others.
    const secret = end < 0 ? userinfo : userinfo.slice(end + 1);
    return secret === '' ? [] : [userinfo, secret, decoded(secret)];
  });
  return found.length === 0 ? [] : [value, ...found];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not encoded, then.
    return text;
  }
}

/**
 * A PATH without what npm and npx put in front of it: `node_modules/.bin` of the package and of each folder
 * above, then their own `node-gyp-bin`; as often as one of them started the other. With these a step would
 * find the runner's own dependencies. Order: @npmcli/run-script, lib/set-path.js.
 */
function withoutNpm(path: string): string {
  const folders = path.split(delimiter);
  for (;;) {
    const end = folders.findIndex((folder) => !NPM_BIN.test(folder));
    if (end < 0 || !NPM_GYP.test(folders[end] ?? '')) return folders.join(delimiter);
    folders.splice(0, end + 1);
  }
}

/** Whether GITHUB_ENV and set-env refuse `name`. Letter case does not count, as on GitHub. */
export function isBlockedName(name: string): boolean {
  return BLOCKED_NAMES.has(name.toUpperCase());
}

/** Whether setting `name` for later steps loads foreign code into their programs: worth a warning. */
export function isSuspiciousName(name: string): boolean {
  return name === 'LD_PRELOAD' || name === 'LD_LIBRARY_PATH' || name.startsWith('DYLD_');
}
