import { tokenError } from '../../model/consistency-token.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { Revision } from '../../protocol/queries.ts';
import type { CallOrigin, Cancellable, ReadScope } from '../../protocol/shard-client.ts';
import type { ProjectSettings } from '../../services/projects/project-settings.ts';
import { readSettings } from '../../services/projects/settings-read.ts';
import type { SettingsSource } from '../../services/projects/settings-source.ts';
import type { HeadRevision } from '../../services/reads/head-revisions.ts';
import type { ReadIndex } from '../../services/reads/read-index.ts';
import type { ReadPositions } from '../../services/reads/read-positions.ts';
import { AppError } from '../../shared/app-error.ts';
import { PendingRead, type ScopeWaiter } from './pending-read.ts';

export type ReadScopesOptions = {
  readonly settingsSource: Pick<
    SettingsSource,
    | 'peek'
    | 'known'
    | 'load'
    | 'settings'
    | 'confirm'
    | 'atLeast'
    | 'mustBeAtLeast'
    | 'guard'
    | 'resolveId'
  >;
  readonly positions: Pick<
    ReadPositions,
    | 'resolve'
    | 'known'
    | 'tokenWithin'
    | 'decode'
    | 'encode'
    | 'isKnownToReach'
    | 'isKnownLost'
    | 'checkToken'
  >;
  readonly index: Pick<ReadIndex, 'request' | 'load'>;
  /**
   * Whether no other instance can have written meanwhile. While it is false what this process knows
   * of heads is not enough: every read asks PostgreSQL for its shard's head first, but for those whose
   * token names a position that is in memory.
   */
  readonly isAlone: () => boolean;
};

/** One read between its arrival and its scope. */
export type ScopeRequest = {
  readonly projectId: string;
  readonly tenantId: string;
  /** '' if none. */
  readonly token: string;
  /** Absolute, on `performance.timeOrigin + performance.now()` (ms); Infinity if none. */
  readonly deadlineMs: number;
  /** Whether the caller stated it; absent: the service did. */
  readonly isDeadlineStated?: boolean | undefined;
  readonly origin?: CallOrigin | undefined;
};

/** How often a read begins anew because settings or the shard moved under it. */
const ATTEMPTS_MAX = 4;

/**
 * Finds the project's settings, guarded, and the position that an answer must reach. The order is the
 * contract's: project, then token.
 *
 * Several instances: a read without a token uses the settings that its read of the head showed, or newer
 * ones. A read with a token sends no request if this process or the shard's owner holds the position: the
 * token proves that it was committed, and an index of the same epoch at or above it holds it. Its settings
 * are those of the TTL, but never older than a change that it shows.
 */
export class ReadScopes {
  readonly #options: ReadScopesOptions;

  constructor(options: ReadScopesOptions) {
    this.#options = options;
  }

  /** The project that `projectId` of a request names. */
  projectIdOf(projectId: string): string {
    return this.#options.settingsSource.resolveId(projectId);
  }

  /** The revision of a shard that a consistency token names. Errors: TOKEN_INVALID. */
  positionOf(shard: ShardKey, token: string): Revision {
    return this.#options.positions.decode(shard, token);
  }

  /** The consistency token of a revision of a shard. */
  tokenOf(shard: ShardKey, revision: Revision): string {
    return this.#options.positions.encode(shard, revision);
  }

  /**
   * The scope when everything is known without waiting and nothing is refused, else undefined:
   * `enqueue` or `decide` then wait, or give the error. Hot: allocates the scope only.
   */
  peek(
    projectId: string,
    tenantId: string,
    token: string,
    deadlineMs: number,
    isDeadlineStated: boolean,
    origin?: CallOrigin,
  ): ReadScope | undefined {
    const isAlone = this.#options.isAlone();
    if (!isAlone && token === '') return undefined;
    const settings = this.#options.settingsSource.peek(projectId);
    if (settings === undefined || settings.suspended || !settings.regionServed) return undefined;
    const shard = { projectId: settings.projectId, tenantId };
    try {
      if (!isAlone)
        return this.#tokenScope(settings, shard, token, deadlineMs, isDeadlineStated, origin);
      const headRevision = this.#options.positions.known(shard, token);
      return headRevision === undefined
        ? undefined
        : scopeOf(settings, tenantId, headRevision, '', deadlineMs, isDeadlineStated, origin);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /**
   * Waits for the scope of a read that `peek` did not know, without a promise; calls `call`, never inside this call. Returns
   * null where only the general path can decide.
   */
  enqueue(request: ScopeRequest, call: ScopeWaiter): Cancellable | null {
    const { settingsSource, positions, index, isAlone } = this.#options;
    if (isAlone()) return this.#enqueueAlone(request, call);
    const settings = settingsSource.known(request.projectId);
    if (settings === undefined) return null;
    const { tenantId, token, deadlineMs, isDeadlineStated = false, origin } = request;
    const shard = { projectId: settings.projectId, tenantId };
    const scopeFor = (
      found: ProjectSettings,
      headRevision: HeadRevision,
    ): ReadScope | undefined => {
      if (found.suspended || !found.regionServed) return undefined;
      if (token !== '' && positions.tokenWithin(shard, token, headRevision) === undefined)
        return undefined;
      return scopeOf(
        found,
        tenantId,
        headRevision,
        headRevision.forkId,
        deadlineMs,
        isDeadlineStated,
        origin,
      );
    };
    const read = new PendingRead(call, deadlineMs, (headRevision, version, askedMs) => {
      const confirmed = settingsSource.confirm(shard.projectId, version, askedMs);
      if (confirmed !== undefined) return scopeFor(confirmed, headRevision);
      return settingsSource
        .atLeast(shard.projectId, version ?? 0)
        .then((newer) => scopeFor(newer, headRevision));
    });
    read.waits = index.request(shard.projectId, tenantId, read);
    return read;
  }

  /** The first read of a tenant: only its head is not known. Nobody else changes the settings meanwhile. */
  #enqueueAlone(request: ScopeRequest, call: ScopeWaiter): Cancellable | null {
    const { settingsSource, index } = this.#options;
    const { tenantId, token, deadlineMs, isDeadlineStated = false, origin } = request;
    const settings = settingsSource.peek(request.projectId);
    if (settings === undefined || settings.suspended || !settings.regionServed) return null;
    if (token !== '') return null;
    const read = new PendingRead(call, deadlineMs, (headRevision) =>
      scopeOf(settings, tenantId, headRevision, '', deadlineMs, isDeadlineStated, origin),
    );
    read.waits = index.request(settings.projectId, tenantId, read);
    return read;
  }

  /**
   * Resolves once what `peek` lacked has been loaded, or could not be: a second `peek` then finds it, or the general path
   * answers why not. Never rejects.
   */
  settled(projectId: string, tenantId: string, token: string): Promise<unknown> {
    const { settingsSource, positions } = this.#options;
    const load = async (): Promise<void> => {
      const settings = await settingsSource.settings(projectId);
      await positions.resolve({ projectId: settings.projectId, tenantId }, token);
    };
    return load().catch(ignoreLoadError);
  }

  /**
   * Runs `ask` with the scope of the read, again where that shows that settings or shard have moved.
   * Errors: PROJECT_UNKNOWN, PROJECT_SUSPENDED, REGION_REFUSED, TOKEN_INVALID, STORE_UNAVAILABLE;
   * FIELD_INVALID for a project id that none can have; DEADLINE_EXCEEDED, CANCELLED; those of `ask`.
   */
  async decide<T>(
    request: ScopeRequest,
    signal: AbortSignal | undefined,
    ask: (scope: ReadScope) => Promise<T>,
  ): Promise<T> {
    let mayHold = true;
    for (let attempt = 1; ; attempt++) {
      const scope = await this.#resolve(request, signal, mayHold);
      try {
        return await ask(scope);
      } catch (error) {
        if (!this.isMoved(request.projectId, error) || attempt === ATTEMPTS_MAX) throw error;
        mayHold = false;
      }
    }
  }

  /** Whether the read of a project is to begin anew after `error`: settings or shard have moved. */
  isMoved(projectId: string, error: unknown): boolean {
    if (!(error instanceof AppError)) return false;
    if (error.reason === 'SETTINGS_OLD') {
      this.#options.settingsSource.mustBeAtLeast(projectId, Number(error.metadata['version']));
      return true;
    }
    return error.reason === 'SHARD_BEHIND';
  }

  /** `mayHold`: the shard's owner may hold more than is known here. */
  async #resolve(
    request: ScopeRequest,
    signal: AbortSignal | undefined,
    mayHold: boolean,
  ): Promise<ReadScope> {
    const { projectId, tenantId, token, deadlineMs, isDeadlineStated = false, origin } = request;
    const { settingsSource, positions, index, isAlone } = this.#options;
    if (isAlone()) {
      const settings = await settingsSource.settings(projectId);
      settingsSource.guard(settings, 'data');
      const shard = { projectId: settings.projectId, tenantId };
      const headRevision = await positions.resolve(shard, token);
      return scopeOf(settings, tenantId, headRevision, '', deadlineMs, isDeadlineStated, origin);
    }
    const scope =
      token === '' || !mayHold
        ? undefined
        : this.peek(projectId, tenantId, token, deadlineMs, isDeadlineStated, origin);
    if (scope !== undefined) return scope;
    const look = await readSettings(
      { settingsSource, index },
      projectId,
      tenantId,
      deadlineMs,
      signal,
    );
    const { settings, headRevision } = look;
    settingsSource.guard(settings, 'data');
    positions.checkToken({ projectId: settings.projectId, tenantId }, token, headRevision);
    return scopeOf(
      settings,
      tenantId,
      headRevision,
      headRevision.forkId,
      deadlineMs,
      isDeadlineStated,
      origin,
    );
  }

  /** The scope of a read with a token, found without any request. Errors: TOKEN_INVALID. */
  #tokenScope(
    settings: ProjectSettings,
    shard: ShardKey,
    token: string,
    deadlineMs: number,
    isDeadlineStated: boolean,
    origin: CallOrigin | undefined,
  ): ReadScope {
    const { positions } = this.#options;
    const { epoch, revision } = positions.decode(shard, token);
    // The owner may not have released the lost history yet, and would still answer from it.
    if (positions.isKnownLost(shard, epoch)) throw tokenError();
    const isHeldOnly = !positions.isKnownToReach(shard, epoch, revision);
    const position = { epoch, minRevision: revision, forkId: '' };
    return {
      ...scopeOf(settings, shard.tenantId, position, '', deadlineMs, isDeadlineStated, origin),
      isHeldOnly,
    };
  }
}

function scopeOf(
  settings: ProjectSettings,
  tenantId: string,
  headRevision: HeadRevision,
  forkId: string,
  deadlineMs: number,
  isDeadlineStated: boolean,
  origin: CallOrigin | undefined,
): ReadScope {
  return {
    projectId: settings.projectId,
    tenantId,
    modelVersion: settings.modelVersion,
    readBudget: settings.readBudget,
    settingsVersion: settings.version,
    refusesUnknown: settings.refusesUnknown,
    epoch: headRevision.epoch,
    minRevision: headRevision.minRevision,
    forkId,
    isHeldOnly: false,
    deadlineMs,
    isDeadlineStated,
    origin,
  };
}

function ignoreLoadError(): void {
  // The caller that needs this head loads it itself, and gets the error there.
}
