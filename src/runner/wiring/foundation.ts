import type { RunStore } from '../model/storage.ts';
import { MasterKey, userConfigDir } from '../secrets/key-source.ts';
import { ownSecretSources } from '../secrets/own-secrets.ts';
import type { SecretService } from '../secrets/secret-api.ts';
import { createSecretService } from '../secrets/secret-service.ts';
import { createTextSealer, type TextSealer } from '../secrets/text-sealer.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { openRunStore } from '../storage/run-store.ts';
import { createSyncService, type SyncService } from '../sync/sync-service.ts';
import {
  type Closings,
  type WiringBasis,
  type WiringOptions,
  basisOf,
  openOrClose,
} from './wiring-basis.ts';

/** What every part stands on: the lock of the workspace, the synchronisation, the secrets. */
export type Foundation = {
  readonly store: RunStore;
  readonly sync: SyncService;
  readonly secrets: SecretService;
  /** Under the key of the local secrets. */
  readonly sealer: TextSealer;
};

/**
 * Opens them in the order in which they need each other.
 * Errors: STORE_UNAVAILABLE when another process has the workspace, and those of each.
 */
export async function openFoundation(basis: WiringBasis, closings: Closings): Promise<Foundation> {
  const { settings, stateDir, report } = basis;
  const store = await openRunStore({ stateDir, diskFloorBytes: settings.diskFloorBytes, report });
  closings.push(() => store.close());
  const masterKey = new MasterKey(settings.secretsKey, userConfigDir(basis.environment));
  const sealer = createTextSealer(masterKey);
  const sync = await openSync(basis, sealer);
  closings.push(() => sync.close());
  const secrets = await openSecrets(basis, sync);
  closings.push(() => secrets.close());
  return { store, sync, secrets, sealer };
}

/**
 * The secrets alone, with the lock of the workspace, for programs that run nothing.
 * Errors: as startParts.
 */
export async function startSecrets(
  settings: RunnerSettings,
  options: WiringOptions,
): Promise<{ readonly secrets: SecretService; readonly stop: () => Promise<void> }> {
  return openOrClose(async (closings) => {
    const { secrets } = await openFoundation(basisOf(settings, options), closings);
    return { secrets, stop: () => closings.closeAll() };
  });
}

function openSync(
  { settings, clock, workspace, stateDir, report, loops }: WiringBasis,
  sealer: TextSealer,
): Promise<SyncService> {
  const { hostApiUrl, hostGitUrl, hostToken, webhookSecret } = settings;
  return createSyncService({
    stateDir,
    projectDir: workspace,
    settings: { hostApiUrl, hostGitUrl, hostToken, webhookSecret },
    sealer,
    clock,
    report,
    polls: loops.loop('polls'),
  });
}

function openSecrets(
  { settings, environment, clock, stateDir, report }: WiringBasis,
  sync: SyncService,
): Promise<SecretService> {
  return createSecretService({
    stateDir,
    secretsKey: settings.secretsKey,
    configDir: userConfigDir(environment),
    environment,
    host: sync.hostSecrets,
    ownSecrets: [...ownSecretSources(settings, stateDir), () => sync.secrets()],
    clock,
    report,
  });
}
