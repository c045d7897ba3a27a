import { AppError } from '../../shared/app-error.ts';
import type { CommitFetcher } from '../model/storage.ts';
import type { HostSecretPort } from '../secrets/host-port.ts';
import { SYNC_KINDS, type HostCacheEntry, type SyncKind } from './cache-entry.ts';
import type { CacheQuery } from './cache.ts';
import type { DeploymentLedger } from './deployment-ledger.ts';
import type { HostRateLimit } from './host-answer.ts';
import { createHostSecrets, type HostTarget } from './host-secrets.ts';
import { applyDelivery } from './inbox-caches.ts';
import { verifyDelivery, type InboxDelivery, type DeliveryRequest } from './inbox.ts';
import { startPoller, type Poller } from './poller.ts';
import { pullAll, type PullReport } from './pull-all.ts';
import { pushStack, type PushResult } from './push-stack.ts';
import { createCommitFetcher } from './remote-git.ts';
import type { SyncAuditQuery, SyncAuditRecord } from './sync-audit.ts';
import type { SyncConfig } from './sync-config.ts';
import { openParts, type SyncParts, type SyncServiceOptions } from './sync-parts.ts';
import { parsePullRequest, parsePushRequest, type PullRequest } from './sync-requests.ts';

const REJECTIONS_PER_MINUTE = 60;

/**
 * Anybody can send what is rejected. Beyond so many a minute they are not audited, so that they cost no
 * disk and do not push the rest of the audit out.
 */
export class RejectionBudget {
  #minute = 0;
  #used = 0;

  admits(nowMs: number): boolean {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#used = 0;
    }
    return ++this.#used <= REJECTIONS_PER_MINUTE;
  }
}

export type SyncStatus = {
  readonly enabled: boolean;
  readonly pulling: boolean;
  readonly pushing: boolean;
  readonly lastPull?: PullReport | undefined;
  readonly nextPollAt?: string | undefined;
  readonly rateLimit?: HostRateLimit | undefined;
  readonly caches: Readonly<
    Record<SyncKind, { readonly entries: number; readonly syncedAt?: string | undefined }>
  >;
  readonly pendingMirrors: number;
};

/** What stands behind /api/sync and /api/deployments. Bodies are parsed JSON as it came. */
export interface SyncService {
  /** The webhook secret shows as a placeholder. */
  getConfig(): SyncConfig;
  /** Errors: INVALID_VALUE, metadata.field = the path; BACKEND_UNAVAILABLE (the webhook secret), DISK_FULL, STORE_UNAVAILABLE. */
  putConfig(body: unknown): Promise<SyncConfig>;
  /** Errors: INVALID_REQUEST, SYNC_DISABLED, SYNC_IN_PROGRESS, SHUTTING_DOWN. What fails at the host stands in `errors`. */
  pull(body: unknown): Promise<PullReport>;
  /** Errors: those of parsePushRequest and pushStack, REMOTE_MISSING, SYNC_IN_PROGRESS. */
  push(body: unknown): Promise<PushResult>;
  /** A cache, newest updated first. */
  entries(kind: SyncKind, query: CacheQuery): readonly HostCacheEntry[];
  /** When the cache was last pulled, for `X-Synced-At`. */
  syncedAt(kind: SyncKind): string | undefined;
  /** Newest first. */
  audit(query: SyncAuditQuery): Promise<readonly SyncAuditRecord[]>;
  /** Errors: those of inbox.ts. Caches follow the event before the promise resolves. */
  verifyDelivery(request: DeliveryRequest): Promise<InboxDelivery>;
  status(): SyncStatus;
  /** Recorder of deployments and what GET /api/deployments asks. */
  readonly deployments: DeploymentLedger;
  /** For the `host` backend of secrets. */
  readonly hostSecrets: HostSecretPort;
  /** Records what kept a delivery that was accepted from starting runs. Never rejects. */
  auditProblems(event: string, deliveryId: string, problems: readonly string[]): Promise<void>;
  /** Commits that the project does not have. */
  readonly commitFetcher: CommitFetcher;
  /** Secrets of the configuration, which no log may show. Errors: BACKEND_UNAVAILABLE. */
  secrets(): Promise<readonly string[]>;
  /** Ends what is in flight; files are complete when the promise resolves. Idempotent. */
  close(): Promise<void>;
}

/**
 * Opens everything below `.runner/sync` and `.runner/deployments.jsonl`, and begins to poll when the
 * configuration says so. Errors: CONFIG_INVALID for settings, BACKEND_UNAVAILABLE for a webhook secret in
 * clear that cannot be sealed, STORE_UNAVAILABLE, DISK_FULL.
 */
export async function createSyncService(options: SyncServiceOptions): Promise<SyncService> {
  return new HostSyncService(await openParts(options));
}

class HostSyncService implements SyncService {
  readonly deployments: DeploymentLedger;
  readonly hostSecrets: HostSecretPort;
  readonly commitFetcher: CommitFetcher;
  readonly #parts: SyncParts;
  readonly #poller: Poller;
  readonly #rejections = new RejectionBudget();
  #pulling: Promise<PullReport> | undefined;
  #pushing: Promise<PushResult> | undefined;
  #lastPull: PullReport | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: SyncParts) {
    this.#parts = parts;
    this.deployments = parts.deployments;
    this.hostSecrets = createHostSecrets(parts.client, () => this.#target());
    this.commitFetcher = createCommitFetcher(parts.remote, () => parts.config.get());
    this.#poller = startPoller({
      intervalMs: () => this.#pollIntervalMs(),
      pull: () => this.#poll(),
      wait: parts.wait,
      nowMs: () => this.#nowMs(),
      report: parts.options.polls,
    });
  }

  getConfig(): SyncConfig {
    return this.#parts.config.get();
  }

  async putConfig(body: unknown): Promise<SyncConfig> {
    const { config, audit, caches } = this.#parts;
    await config.put(body);
    const { enabled, host } = config.get();
    // What was mirrored of another repository is not shown as this one's.
    for (const kind of SYNC_KINDS) {
      if (host.repo === '' || !caches[kind].useRepository(`${host.owner}/${host.repo}`)) continue;
      await caches[kind].save();
    }
    const detail = `${enabled ? 'enabled' : 'disabled'} for ${host.owner}/${host.repo}`;
    await audit.record({ kind: 'config', result: 'ok', detail }, this.#nowMs());
    this.#poller.settingsChanged();
    return this.getConfig();
  }

  async pull(body: unknown): Promise<PullReport> {
    const request = parsePullRequest(body);
    if (!this.#parts.config.get().enabled) {
      throw new AppError('SYNC_DISABLED', 'sync is not enabled; see /api/sync/config');
    }
    if (this.#pulling !== undefined) throw inProgress('a pull');
    return await this.#startPull(request);
  }

  async push(body: unknown): Promise<PushResult> {
    const request = parsePushRequest(body);
    const target = this.#target(request.isDryRun);
    if (typeof target === 'string') throw new AppError('REMOTE_MISSING', target);
    if (this.#pushing !== undefined) throw inProgress('a push');
    const { client, remote, directory, options, audit, stop } = this.#parts;
    const { projectDir, report, settings } = options;
    const { signal } = stop;
    const hasToken = settings.hostToken !== undefined;
    const context = { client, remote, projectDir, directory, report, signal, hasToken, ...target };
    this.#pushing = pushStack(context, request);
    try {
      const result = await this.#pushing;
      const count = result.stack.filter(({ action }) => action !== 'unchanged').length;
      const detail = `${result.stack.length} pull requests, ${count} ${request.isDryRun ? 'would change (dry run)' : 'changed'}`;
      await audit.record({ kind: 'push', result: 'ok', detail }, this.#nowMs());
      return result;
    } catch (error) {
      await this.#auditFailure('push', error);
      throw error;
    } finally {
      this.#pushing = undefined;
    }
  }

  entries(kind: SyncKind, query: CacheQuery): readonly HostCacheEntry[] {
    return this.#parts.caches[kind].query(query);
  }

  syncedAt(kind: SyncKind): string | undefined {
    return this.#parts.caches[kind].cursor().syncedAt;
  }

  audit(query: SyncAuditQuery): Promise<readonly SyncAuditRecord[]> {
    return this.#parts.audit.query(query);
  }

  async verifyDelivery(request: DeliveryRequest): Promise<InboxDelivery> {
    const { config, deliveries, options, caches } = this.#parts;
    const { settings, report } = options;
    let delivery: InboxDelivery;
    try {
      const secret = settings.webhookSecret ?? (await config.webhookSecret());
      delivery = await verifyDelivery(request, secret, deliveries, this.#nowMs());
    } catch (error) {
      await this.#auditFailure('webhook', error);
      throw error;
    }
    const { deliveryId, kind } = delivery;
    const event = kind === 'ping' ? 'ping' : delivery.event;
    let detail: string = kind;
    if (kind === 'accepted') {
      try {
        const isUsed = await applyDelivery(event, delivery.payload, config.get(), caches);
        if (isUsed) detail = 'accepted; a cache followed';
      } catch (error) {
        // The next pull brings it; the event itself is not lost for that.
        report('sync.cache_failed', error as Error);
      }
    }
    const result = kind === 'duplicate' ? 'duplicate' : 'ok';
    await this.#parts.audit.record(
      { kind: 'webhook', event, deliveryId, result, detail },
      this.#nowMs(),
    );
    return delivery;
  }

  status(): SyncStatus {
    const { config, caches, client, deployments } = this.#parts;
    const cacheStatus = (kind: SyncKind): SyncStatus['caches'][SyncKind] => ({
      entries: caches[kind].size(),
      syncedAt: this.syncedAt(kind),
    });
    return {
      enabled: config.get().enabled,
      pulling: this.#pulling !== undefined,
      pushing: this.#pushing !== undefined,
      lastPull: this.#lastPull,
      nextPollAt: this.#poller.nextPollAt(),
      rateLimit: client.rateLimit(),
      caches: {
        issues: cacheStatus('issues'),
        discussions: cacheStatus('discussions'),
        wiki: cacheStatus('wiki'),
        releases: cacheStatus('releases'),
      },
      pendingMirrors: deployments.pendingMirrors(),
    };
  }

  async secrets(): Promise<readonly string[]> {
    const secret = await this.#parts.config.webhookSecret();
    return secret === undefined ? [] : [secret];
  }

  auditProblems(event: string, deliveryId: string, problems: readonly string[]): Promise<void> {
    const detail = problems.join('; ');
    const record = { kind: 'webhook', event, deliveryId, result: 'failed', detail } as const;
    return this.#parts.audit.record(record, this.#nowMs());
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { stop, deployments, audit, deliveries } = this.#parts;
    stop.abort();
    await this.#poller.stop();
    // Their callers get the error.
    await Promise.allSettled([this.#pulling, this.#pushing]);
    await deployments.close();
    await Promise.all([audit.close(), deliveries.close()]);
  }

  #startPull(request: PullRequest, isPoll = false): Promise<PullReport> {
    const { config, options, remote, client, caches, directory, stop } = this.#parts;
    const current = config.get();
    const { owner, repo } = current.host;
    const { hostGitUrl } = options.settings;
    const context = {
      client,
      remote,
      directory,
      caches,
      owner,
      repo,
      webUrl: hostGitUrl.replace(/\/+$/, ''),
      signal: stop.signal,
      nowMs: () => this.#nowMs(),
    };
    const pulling = pullAll(context, current, request)
      .then(
        async (report) => {
          this.#lastPull = report;
          if (!isPoll || isWorthReporting(report)) await this.#auditPull(report);
          return report;
        },
        async (error: unknown) => {
          await this.#auditFailure('pull', error);
          throw error;
        },
      )
      .finally(() => {
        this.#pulling = undefined;
      });
    this.#pulling = pulling;
    return pulling;
  }

  #auditPull(report: PullReport): Promise<void> {
    const done = SYNC_KINDS.flatMap((kind) => {
      const part = report[kind];
      return part === undefined ? [] : [`${kind} ${part.updated} of ${part.fetched}`];
    });
    const failed = report.errors.map(({ kind, message }) => `${kind}: ${message}`);
    const result = failed.length === 0 ? 'ok' : done.length === 0 ? 'failed' : 'partial';
    const detail = [...done, ...failed].join('; ');
    return this.#parts.audit.record({ kind: 'pull', result, detail }, this.#nowMs());
  }

  async #auditFailure(kind: SyncAuditRecord['kind'], error: unknown): Promise<void> {
    if (kind === 'webhook' && !this.#rejections.admits(this.#nowMs())) return;
    const detail =
      error instanceof AppError ? `${error.reason}: ${error.message}` : 'internal error';
    const result = kind === 'webhook' ? 'rejected' : 'failed';
    await this.#parts.audit.record({ kind, result, detail }, this.#nowMs());
  }

  async #poll(): Promise<PullReport | undefined> {
    if (this.#pulling !== undefined) return undefined;
    return await this.#startPull({ isFull: false, only: undefined }, true);
  }

  #pollIntervalMs(): number {
    const { enabled, host } = this.#parts.config.get();
    return enabled ? host.pollIntervalMs : 0;
  }

  /** The repository that is written to, or only looked at, or why there is none. */
  #target(isDryRun = false): HostTarget | string {
    const { owner, repo } = this.#parts.config.get().host;
    if (owner === '' || repo === '') return 'no repository is set in the sync configuration';
    if (!isDryRun && this.#parts.options.settings.hostToken === undefined) {
      return 'there is no token for the code host (RUNNER_HOST_TOKEN)';
    }
    return { owner, repo };
  }

  #nowMs(): number {
    return this.#parts.options.clock.nowMs();
  }
}

/** Polls that found nothing new would fill the audit. */
function isWorthReporting(report: PullReport): boolean {
  return report.errors.length > 0 || SYNC_KINDS.some((kind) => (report[kind]?.updated ?? 0) > 0);
}

function inProgress(what: string): AppError {
  return new AppError('SYNC_IN_PROGRESS', `${what} is going on already`);
}
