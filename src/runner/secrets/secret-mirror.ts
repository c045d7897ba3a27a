import type { LocalEntry, LocalStore } from './local-store.ts';
import { environmentKey } from './names.ts';
import type { VaultContent, VaultEntry } from './vault-file.ts';

/** What a pull from the vault changes in the mirror. */
export type MirrorPlan = {
  readonly puts: readonly LocalEntry[];
  readonly removals: readonly LocalEntry[];
  readonly unchanged: number;
  /** Local edits that are newer than the vault's entry and go on winning. */
  readonly kept: readonly LocalEntry[];
};

/**
 * Compares the vault with its mirror. SOPS keeps one time for the whole file, so an entry's time is that of
 * the file in which its value was first seen: a local edit made since is newer, even if the vault
 * changed elsewhere later. `values` in `puts` are plain.
 */
export function planVaultPull(store: LocalStore, content: VaultContent | undefined): MirrorPlan {
  const mirrored = store.entries().filter(({ backend }) => backend === 'vault');
  const updatedAt = new Date(content?.lastModifiedMs ?? 0).toISOString();
  const puts: LocalEntry[] = [];
  const kept: LocalEntry[] = [];
  let unchanged = 0;
  const seen = new Set<string>();
  for (const entry of content?.entries ?? []) {
    seen.add(identityOf(entry));
    const before = store.entry(entry.environment, entry.name, 'vault');
    const isSame = before !== undefined && store.valueOf(before) === entry.value;
    if (isSame) unchanged++;
    else puts.push({ ...entry, backend: 'vault', updatedAt });
    const local = store.entry(entry.environment, entry.name, 'local');
    const since = isSame ? before.updatedAt : updatedAt;
    if (local !== undefined && local.updatedAt > since) kept.push(local);
  }
  const removals = mirrored.filter((entry) => !seen.has(identityOf(entry)));
  return { puts, removals, unchanged, kept };
}

/** The entry whose value a job gets: the newer of the local one and the vault's. */
export function effectiveEntry(
  store: LocalStore,
  environment: string,
  name: string,
): LocalEntry | undefined {
  const local = store.entry(environment, name, 'local');
  const vault = store.entry(environment, name, 'vault');
  if (local === undefined || vault === undefined) return local ?? vault;
  return local.updatedAt >= vault.updatedAt ? local : vault;
}

function identityOf(entry: Pick<VaultEntry, 'environment' | 'name'>): string {
  return `${environmentKey(entry.environment)}:${entry.name}`;
}
