import { AppError } from '../../shared/app-error.ts';
import type { HostSecretPort } from './host-port.ts';
import type { LocalEntry, LocalStore } from './local-store.ts';
import { DEFAULT_ENVIRONMENT, environmentKey, nameProblem } from './names.ts';
import type { SyncedBackend, SyncResult } from './secret-api.ts';
import type { SecretAuditEvent } from './secret-audit.ts';
import { SYNC_ERRORS_MAX } from './secret-limits.ts';
import { planVaultPull } from './secret-mirror.ts';
import type { ProcessSecrets } from './secret-stores.ts';
import type { VaultFile } from './vault-file.ts';

export type PullSources = {
  readonly local: LocalStore;
  readonly vault: VaultFile;
  readonly process: ProcessSecrets;
  /** Names of the process environment that an earlier pull counted. */
  readonly seenProcessNames: ReadonlySet<string>;
  readonly host: HostSecretPort | undefined;
  readonly nowMs: number;
};
type Pulled = { readonly backend: SyncedBackend; readonly events: readonly SecretAuditEvent[] };

/**
 * Pulls from every backend into the mirror: values of the vault, names of the host. Values of the process
 * environment are not copied to disk; they are read where they are. A backend that fails keeps its mirror.
 * Errors: those of the local store, which holds the mirror.
 */
export async function pullAll(sources: PullSources): Promise<{
  readonly result: SyncResult;
  readonly events: readonly SecretAuditEvent[];
}> {
  await sources.local.open();
  const pulled = [
    localState(sources),
    await pullVault(sources),
    processState(sources),
    await pullHost(sources),
  ];
  const { local, process } = sources;
  return {
    result: {
      backends: pulled.map(({ backend }) => backend),
      mirror: {
        count: local.entries().length + process.values.size,
        updatedAt: local.mirror.pulledAt,
      },
    },
    events: pulled.flatMap(({ backend, events }) => [
      ...events,
      ...(backend.available && backend.name !== 'local' ? [summaryEvent(backend)] : []),
    ]),
  };
}

function localState({ local }: PullSources): Pulled {
  const unchanged = local.entries().filter(({ backend }) => backend === 'local').length;
  return {
    backend: { name: 'local', available: true, pulled: 0, unchanged, removed: 0, errors: [] },
    events: [],
  };
}

function processState({ process, seenProcessNames }: PullSources): Pulled {
  const unchanged = [...process.values.keys()].filter((name) => seenProcessNames.has(name)).length;
  const pulled = process.values.size - unchanged;
  const errors = limited(process.problems);
  return {
    backend: { name: 'env', available: true, pulled, unchanged, removed: 0, errors },
    events: [],
  };
}

/**
 * Pulls the vault alone, when it is another than at the last pull; undefined when it is the same.
 * Errors: as pullAll, and those of a vault that cannot be read.
 */
export async function pullStaleVault(
  sources: Pick<PullSources, 'local' | 'vault' | 'nowMs'>,
): Promise<Pulled | undefined> {
  const { local, vault } = sources;
  await local.open();
  const digest = (await vault.read())?.digest ?? null;
  return digest === local.mirror.vaultDigest ? undefined : await pullVault(sources);
}

async function pullVault({
  local,
  vault,
  nowMs,
}: Pick<PullSources, 'local' | 'vault' | 'nowMs'>): Promise<Pulled> {
  try {
    const content = await vault.read();
    const plan = planVaultPull(local, content);
    const mirror = {
      pulledAt: new Date(nowMs).toISOString(),
      vaultDigest: content?.digest ?? null,
    };
    const isUnneeded = content === undefined && local.entries().length === 0;
    if (!isUnneeded) await local.change(plan.puts, plan.removals, mirror);
    const kept = plan.kept.map(
      ({ environment, name, updatedAt }) =>
        `${environment}.${name}: the local edit of ${updatedAt} is newer than the vault's and stays`,
    );
    return {
      backend: {
        name: 'vault',
        available: true,
        pulled: plan.puts.length,
        unchanged: plan.unchanged,
        removed: plan.removals.length,
        errors: limited([...kept, ...(content?.problems ?? [])]),
      },
      events: [
        ...plan.puts.map((entry) => syncEvent(local, entry, 'pulled')),
        ...plan.removals.map((entry) => syncEvent(local, entry, 'removed')),
        ...plan.kept.map((entry) => syncEvent(local, entry, 'kept')),
      ],
    };
  } catch (error) {
    return failed('vault', error);
  }
}

async function pullHost({ local, host, nowMs }: PullSources): Promise<Pulled> {
  if (host === undefined || host.problem() !== undefined) {
    const problem = host?.problem() ?? 'no code host is configured';
    return failed('host', new AppError('BACKEND_UNAVAILABLE', problem));
  }
  try {
    const mirrored = local.entries().filter(({ backend }) => backend === 'host');
    const environments = new Map([[DEFAULT_ENVIRONMENT, DEFAULT_ENVIRONMENT]]);
    for (const { environment } of local.entries()) {
      environments.set(environmentKey(environment), environment);
    }
    const listed: LocalEntry[] = [];
    for (const environment of environments.values()) {
      for (const { name, updatedAt } of await host.listSecrets(environment)) {
        if (nameProblem(name) !== undefined) continue;
        listed.push({ environment, name, backend: 'host', value: '', updatedAt });
      }
    }
    const news = listed.filter(({ environment, name, updatedAt }) => {
      return local.entry(environment, name, 'host')?.updatedAt !== updatedAt;
    });
    const present = new Set(listed.map(placeOf));
    const removals = mirrored.filter((entry) => !present.has(placeOf(entry)));
    const mirror = { ...local.mirror, pulledAt: new Date(nowMs).toISOString() };
    await local.change(news, removals, mirror);
    return {
      backend: {
        name: 'host',
        available: true,
        pulled: news.length,
        unchanged: listed.length - news.length,
        removed: removals.length,
        errors: [],
      },
      events: [],
    };
  } catch (error) {
    return failed('host', error);
  }
}

function placeOf({ environment, name }: LocalEntry): string {
  return `${environmentKey(environment)}:${name}`;
}

function failed(name: 'vault' | 'host', error: unknown): Pulled {
  if (!(error instanceof AppError)) throw error;
  const errors = [error.message];
  return {
    backend: { name, available: false, pulled: 0, unchanged: 0, removed: 0, errors },
    events: [],
  };
}

function syncEvent(local: LocalStore, entry: LocalEntry, result: string): SecretAuditEvent {
  const { name, environment, backend, value } = entry;
  const fingerprint = result === 'pulled' ? local.fingerprint(environment, name, value) : undefined;
  return { action: 'sync', name, environment, backend, result, fingerprint };
}

function summaryEvent({ name, pulled, unchanged, removed }: SyncedBackend): SecretAuditEvent {
  const result = `${pulled} pulled, ${unchanged} unchanged, ${removed} removed`;
  return { action: 'sync', name: '', environment: '', backend: name, result };
}

function limited(problems: readonly string[]): readonly string[] {
  if (problems.length <= SYNC_ERRORS_MAX) return problems;
  const rest = problems.length - SYNC_ERRORS_MAX + 1;
  return [...problems.slice(0, SYNC_ERRORS_MAX - 1), `and ${rest} more`];
}
