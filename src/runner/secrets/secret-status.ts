import { AppError } from '../../shared/app-error.ts';
import type { HostSecretPort } from './host-port.ts';
import type { KeySource } from './key-source.ts';
import type { LocalStore } from './local-store.ts';
import { environmentKey } from './names.ts';
import type { BackendStatus, SecretStatus } from './secret-api.ts';
import type { ProcessSecrets } from './secret-stores.ts';
import type { VaultFile } from './vault-file.ts';

/** Which backends can be used and how fresh the mirror is. Cost: decrypts the vault. */
export async function statusOf(parts: {
  readonly local: LocalStore;
  readonly vault: VaultFile;
  readonly process: ProcessSecrets;
  readonly host: HostSecretPort | undefined;
  readonly keySource: KeySource;
}): Promise<SecretStatus> {
  const { local, vault, process, host } = parts;
  const localProblem = await problemOf(() => local.open());
  let digest: string | undefined;
  const vaultProblem = await problemOf(async () => {
    digest = (await vault.read())?.digest;
  });
  const hostProblem = host === undefined ? 'no code host is configured' : host.problem();
  const environments = new Map(
    local.entries().map(({ environment }) => [environmentKey(environment), environment]),
  );
  if (process.values.size > 0) environments.set(process.environment, process.environment);
  const noVault =
    digest === undefined ? 'there is no vault yet; the first secret makes it' : undefined;
  return {
    backends: [
      backendStatus('local', localProblem, true, local.path),
      {
        ...backendStatus('vault', vaultProblem, true, vault.path),
        ...reasonOf(vaultProblem ?? noVault),
      },
      { ...backendStatus('env', undefined, false), ...reasonOf(process.problems.at(0)) },
      backendStatus('host', hostProblem, true),
    ],
    mirror: {
      entries: local.entries().length + process.values.size,
      environments: [...environments.values()].sort(),
      updatedAt: local.mirror.pulledAt,
      stale: vaultProblem === undefined && (digest ?? null) !== local.mirror.vaultDigest,
    },
    encryption: { algorithm: 'AES-256-GCM', keySource: parts.keySource },
  };
}

function backendStatus(
  name: BackendStatus['name'],
  problem: string | undefined,
  isWritable: boolean,
  path?: string,
): BackendStatus {
  const available = problem === undefined;
  return {
    name,
    available,
    writable: available && isWritable,
    ...reasonOf(problem),
    ...(path === undefined ? {} : { path }),
  };
}

function reasonOf(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

async function problemOf(action: () => Promise<void>): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.message;
  }
}
