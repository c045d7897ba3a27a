import type { ValidInputs } from '../steps/step-input.ts';

/** The actions that this runner does itself. */
export const BUILT_IN_NAMES = [
  'actions/checkout',
  'actions/upload-artifact',
  'actions/download-artifact',
  'actions/cache',
  'actions/cache/restore',
  'actions/cache/save',
  'actions/setup-node',
  'actions/setup-python',
  'actions/setup-go',
  'astral-sh/setup-uv',
  'pnpm/action-setup',
] as const;
export type BuiltInName = (typeof BUILT_IN_NAMES)[number];

type Reference = { readonly repository: string; readonly path: string };

/** Which of them a reference names; letter case does not count. */
export function builtInName({ repository, path }: Reference): BuiltInName | undefined {
  const name = (path === '' ? repository : `${repository}/${path}`).toLowerCase();
  return BUILT_IN_NAMES.find((one) => one === name);
}

export function isBuiltIn(reference: Reference): boolean {
  return builtInName(reference) !== undefined;
}

/**
 * What the actions that are built in declare, those included that change nothing here: `name`, `name@4` from
 * major version 4 on, `name@5-6` from 5 to 6, `name-6` up to 6. Names and their order as in the newest version.
 * Source: action.yml (of cache also save/action.yml and restore/action.yml) in the repository of each, the tags
 * of every major version: checkout and upload-artifact up to 7, download-artifact up to 8, cache up to 5,
 * setup-node, setup-python and setup-go up to 7, setup-uv up to 10, pnpm/action-setup up to 4, whose later tags
 * have the two for its cache.
 */
const INPUTS: Readonly<Record<BuiltInName, string>> = {
  'actions/checkout': `repository ref token ssh-key@2 ssh-known-hosts@2 ssh-strict@2 ssh-user@4
    persist-credentials@2 path clean filter@4 sparse-checkout@3 sparse-checkout-cone-mode@3 fetch-depth
    fetch-tags@3 show-progress@4 lfs submodules set-safe-directory@2 github-server-url@3
    allow-unsafe-pr-checkout@2`,
  'actions/upload-artifact': `name path if-no-files-found@2 retention-days@2 compression-level@4 overwrite@4
    include-hidden-files@3 archive@7`,
  'actions/download-artifact': `name artifact-ids@4 path pattern@4 merge-multiple@4 github-token@4
    repository@4 run-id@4 skip-decompress@8 digest-mismatch@8`,
  'actions/cache': `path key restore-keys upload-chunk-size@2 enableCrossOsArchive@3 fail-on-cache-miss@3
    lookup-only@3 save-always@4`,
  'actions/cache/restore': `path key restore-keys enableCrossOsArchive fail-on-cache-miss lookup-only`,
  'actions/cache/save': `path key upload-chunk-size enableCrossOsArchive`,
  'actions/setup-node': `node-version node-version-file@2 architecture@2 check-latest@2 registry-url scope
    token@2 cache@2 package-manager-cache@5 cache-dependency-path@2 mirror@4 mirror-token@4 always-auth-6
    version-2`,
  'actions/setup-python': `python-version python-version-file@4 cache@2 architecture check-latest@4 token@2
    cache-dependency-path@2 update-environment@4 allow-prereleases@4 freethreaded@5 pip-version@6
    pip-install@6-6 version-1`,
  'actions/setup-go': `go-version go-version-file@3 check-latest@2 token@2 cache@3 cache-dependency-path@3
    architecture@3 go-download-base-url@6 stable@2-2 version-1`,
  'astral-sh/setup-uv': `version version-file@6 python-version@4 activate-environment@6 venv-path@7
    no-project@8 working-directory@6 checksum github-token enable-cache cache-dependency-glob
    restore-cache@6 save-cache@6 cache-suffix cache-local-path prune-cache@3 cache-python@7
    ignore-nothing-to-cache@4 ignore-empty-workdir@5 tool-dir@3 tool-bin-dir@3 manifest-file@6
    download-from-astral-mirror@8 add-problem-matchers@6 quiet@8 resolution-strategy@7 pyproject-file@5-5
    server-url@6-6 uv-file@5-5`,
  'pnpm/action-setup': `version dest run_install cache@4 cache_dependency_path@4 package_json_file@2
    standalone@2 bin_dest-1 registry-1`,
};
/** Inputs whose use is warned of, in our words. */
const DEPRECATED: Readonly<Partial<Record<BuiltInName, Readonly<Record<string, string>>>>> = {
  'actions/cache': {
    'save-always':
      'it does not do what its name says and will go: use actions/cache/restore and actions/cache/save instead',
  },
};
const ENTRY = /^(.+?)(?:@(\d+))?(?:-(\d+))?$/;

/** The inputs that a built-in action has in the version which `uses` names; a commit or branch has those of all. */
export function builtInInputs(name: BuiltInName, uses: string): ValidInputs {
  const version = /@v(\d+)(?:\.|$)/.exec(uses)?.[1];
  const major = version === undefined ? undefined : Number(version);
  const names = INPUTS[name].split(/\s+/).flatMap((entry) => {
    const [, input = '', since = '0', until = 'Infinity'] = ENTRY.exec(entry) ?? [];
    const isThere = major === undefined || (major >= Number(since) && major <= Number(until));
    return isThere ? [input] : [];
  });
  return { names, deprecated: new Map(Object.entries(DEPRECATED[name] ?? {})) };
}
