import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ReadScope } from '../../protocol/shard-client.ts';
import type { ProjectService } from '../../services/project-service.ts';
import type { ProjectSettings } from '../../services/project-settings.ts';
import type { ReadPositions } from '../../services/read-positions.ts';
import type { ShardHead, ShardHeads } from '../../services/shard-heads.ts';
import { AppError } from '../../shared/app-error.ts';

export type ReadScopesOptions = {
  readonly projects: Pick<ProjectService, 'peek' | 'settings' | 'guard' | 'resolveId'>;
  readonly positions: Pick<ReadPositions, 'resolve'>;
  readonly heads: Pick<ShardHeads, 'load'>;
  /**
   * Whether no other instance can have written meanwhile. While it is false what this process knows
   * of heads is not enough: every read asks Postgres for its shard's head first.
   */
  readonly isAlone: () => boolean;
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
    return this.#options.projects.resolveId(projectId);
  }

  /**
   * The scope when everything is known without waiting and nothing is refused, else undefined:
   * `resolve` then waits, or gives the error. Hot: allocates the scope only.
   */
  peek(
    projectId: string,
    tenantId: string,
    token: string,
    deadlineMs: number,
  ): ReadScope | undefined {
    if (!this.#options.isAlone()) return undefined;
    const settings = this.#options.projects.peek(projectId);
    if (settings === undefined || settings.suspended || !settings.regionServed) return undefined;
    const head = this.#headNow({ projectId: settings.projectId, tenantId }, token);
    return head === undefined ? undefined : scopeOf(settings, tenantId, head, deadlineMs);
  }

  /**
   * Errors: PROJECT_UNKNOWN, PROJECT_SUSPENDED, REGION_REFUSED, TOKEN_INVALID, STORE_UNAVAILABLE;
   * FIELD_INVALID for a project id that none can have.
   */
  async resolve(
    projectId: string,
    tenantId: string,
    token: string,
    deadlineMs: number,
  ): Promise<ReadScope> {
    const { projects, positions, heads, isAlone } = this.#options;
    const settings = await projects.settings(projectId);
    projects.guard(settings, 'data');
    if (!isAlone()) await heads.load(settings.projectId, tenantId);
    const head = await positions.resolve({ projectId: settings.projectId, tenantId }, token);
    return scopeOf(settings, tenantId, head, deadlineMs);
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
