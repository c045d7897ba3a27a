import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoopReport } from '../../shared/loop-report.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { TextSealer } from '../secrets/text-sealer.ts';
import { storageError } from '../storage/file-errors.ts';
import type { SyncKind } from './cache-entry.ts';
import { openCache, type Cache } from './cache.ts';
import { openConfigStore, type ConfigStore } from './config-store.ts';
import { openDeliveryMemory, type DeliveryMemory } from './delivery-memory.ts';
import { createDeploymentLedger, type DeploymentLedger } from './deployment-ledger.ts';
import { createHostClient, type HostClient } from './host-client.ts';
import { createIssueMirror } from './issue-mirror.ts';
import { createRemoteGit, type RemoteGit } from './remote-git.ts';
import { openSyncAudit, type SyncAudit } from './sync-audit.ts';

export type SyncSettings = {
  /** `https://api.github.com`, `https://host/api/v3`… */
  readonly hostApiUrl: string;
  /** Where repositories are, also for people: `https://github.com`. */
  readonly hostGitUrl: string;
  readonly hostToken: string | undefined;
  /** RUNNER_WEBHOOK_SECRET: wins over the configured one. */
  readonly webhookSecret: string | undefined;
};

export type SyncServiceOptions = {
  /** `.runner` of the project. */
  readonly stateDir: string;
  readonly projectDir: string;
  readonly settings: SyncSettings;
  /** For the webhook secret of the configuration. */
  readonly sealer: TextSealer;
  readonly clock: Clock;
  readonly report: ProblemReporter;
  /** Hears of pulls that nobody asked for. */
  readonly polls: LoopReport;
  /** Default Math.random: it spreads retries, nothing else. */
  readonly random?: (() => number) | undefined;
  /** Default a timer that does not keep the process alive. Rejects when the signal says so. */
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
};

/** What a SyncService is made of. */
export type SyncParts = {
  readonly options: SyncServiceOptions;
  readonly directory: string;
  readonly stop: AbortController;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly client: HostClient;
  readonly remote: RemoteGit;
  readonly config: ConfigStore;
  readonly caches: Readonly<Record<SyncKind, Cache>>;
  readonly audit: SyncAudit;
  readonly deliveries: DeliveryMemory;
  readonly deployments: DeploymentLedger;
};

/** Opens every file of the sync folder and the ledger. Errors: those of createSyncService. */
export async function openParts(options: SyncServiceOptions): Promise<SyncParts> {
  const { stateDir, clock, report } = options;
  const settings = withoutEmpty(options.settings);
  const directory = join(stateDir, 'sync');
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw storageError('making the sync folder', error);
  }
  const random = options.random ?? Math.random;
  const wait = options.wait ?? unrefWait;
  const stop = new AbortController();
  const client = createHostClient({
    apiUrl: settings.hostApiUrl,
    token: settings.hostToken,
    clock,
    random,
    wait,
    signal: stop.signal,
  });
  const remote = createRemoteGit(settings.hostGitUrl, settings.hostToken);
  const config = await openConfigStore(directory, options.sealer, report);
  const mirror =
    settings.hostToken === undefined
      ? undefined
      : createIssueMirror({ client, config: config.get, clock, random, wait, report });
  return {
    options: { ...options, settings },
    directory,
    stop,
    wait,
    client,
    remote,
    config,
    caches: await openCaches(directory, report),
    audit: await openSyncAudit(directory, report),
    deliveries: await openDeliveryMemory(directory, clock.nowMs(), report),
    deployments: await createDeploymentLedger({
      stateDir,
      config: config.get,
      mirror,
      clock,
      report,
    }),
  };
}

/** An empty token or secret is none. */
function withoutEmpty(settings: SyncSettings): SyncSettings {
  const { hostToken, webhookSecret } = settings;
  return {
    ...settings,
    hostToken: hostToken === '' ? undefined : hostToken,
    webhookSecret: webhookSecret === '' ? undefined : webhookSecret,
  };
}

async function openCaches(
  directory: string,
  report: ProblemReporter,
): Promise<Readonly<Record<SyncKind, Cache>>> {
  return {
    issues: await openCache(directory, 'issues', report),
    discussions: await openCache(directory, 'discussions', report),
    wiki: await openCache(directory, 'wiki', report),
    releases: await openCache(directory, 'releases', report),
  };
}

async function unrefWait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false });
}
