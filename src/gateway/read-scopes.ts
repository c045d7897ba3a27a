import type { ShardKey } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import type { ReadScope } from '../protocol/shard-client.ts';
import { type GuardMode, type ProjectSettings, refusalOf } from '../services/project-settings.ts';
import type { ShardHead } from '../services/shard-heads.ts';

/** Settings of projects as the gateway needs them; ProjectService is one. */
export interface SettingsSource {
  /** The settings when they are cached, fresh and known to every worker. Hot. */
  peek(projectId: string): ProjectSettings | undefined;
  /** Errors: PROJECT_UNKNOWN, STORE_UNAVAILABLE. */
  resolve(projectId: string): Promise<ProjectSettings>;
}

/** Positions of reads; ReadPositions is one. */
export interface PositionSource {
  /** Errors: TOKEN_INVALID, thrown or rejected; STORE_UNAVAILABLE, rejected. Hot. */
  resolve(shard: ShardKey, token: string): ShardHead | Promise<ShardHead>;
}

export type ReadScopesOptions = {
  readonly settings: SettingsSource;
  readonly positions: PositionSource;
  readonly defaultProjectId: string;
  /** Called for each request refused because of the project's region. */
  readonly onRegionRefused: () => void;
};

/**
 * What a read needs besides its question: the project's settings, guarded, and the position that
 * its answer must reach. The order is the contract's: project, then token.
 */
export class ReadScopes {
  readonly #options: ReadScopesOptions;

  constructor(options: ReadScopesOptions) {
    this.#options = options;
  }

  /** The project that `projectId` of a request names. */
  projectIdOf(projectId: string): string {
    return projectId === '' ? this.#options.defaultProjectId : projectId;
  }

  /**
   * The scope when everything is known without waiting and nothing is refused, else undefined:
   * `resolve` then waits, or gives the error. Hot: allocates the scope only.
   */
  peek(
    requested: string,
    tenantId: string,
    token: string,
    deadlineMs: number,
  ): ReadScope | undefined {
    const projectId = this.projectIdOf(requested);
    const settings = this.#options.settings.peek(projectId);
    if (settings === undefined || settings.suspended || !settings.regionServed) return undefined;
    const head = this.#headNow({ projectId, tenantId }, token);
    return head === undefined ? undefined : scopeOf(settings, tenantId, head, deadlineMs);
  }

  /** Errors: PROJECT_UNKNOWN, PROJECT_SUSPENDED, REGION_REFUSED, TOKEN_INVALID, STORE_UNAVAILABLE. */
  async resolve(
    requested: string,
    tenantId: string,
    token: string,
    deadlineMs: number,
  ): Promise<ReadScope> {
    const settings = await this.settings(requested, 'data');
    const shard = { projectId: settings.projectId, tenantId };
    const head = await this.#options.positions.resolve(shard, token);
    return scopeOf(settings, tenantId, head, deadlineMs);
  }

  /** The project's settings once it is known, not suspended (unless `mode` allows) and served here. */
  async settings(requested: string, mode: GuardMode): Promise<ProjectSettings> {
    const projectId = this.projectIdOf(requested);
    const { settings: source } = this.#options;
    const settings = source.peek(projectId) ?? (await source.resolve(projectId));
    const refusal = refusalOf(settings, mode);
    if (refusal === undefined) return settings;
    if (refusal.reason === 'REGION_REFUSED') this.#options.onRegionRefused();
    throw refusal;
  }

  #headNow(shard: ShardKey, token: string): ShardHead | undefined {
    try {
      const head = this.#options.positions.resolve(shard, token);
      if (!(head instanceof Promise)) return head;
      // The general path waits for it, and for its error; a second load joins this one.
      head.catch(ignoreLoadError);
      return undefined;
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }
}

function ignoreLoadError(): void {
  // The caller that needs this head loads it itself, and gets the error there.
}

function scopeOf(
  settings: ProjectSettings,
  tenantId: string,
  head: ShardHead,
  deadlineMs: number,
): ReadScope {
  return {
    projectId: settings.projectId,
    tenantId,
    modelVersion: settings.modelVersion,
    readBudget: settings.readBudget,
    epoch: head.epoch,
    minSeq: head.minSeq,
    deadlineMs,
  };
}
