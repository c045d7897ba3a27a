import { type TokenCodec, type TokenPosition, tokenError } from '../../model/consistency-token.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { HeadRevision, HeadRevisions } from './head-revisions.ts';
import type { ReadIndex } from './read-index.ts';

/**
 * Finds the position from which a read may be answered: the head revision that this process knows. It is at
 * or above every write that this process acknowledged, and above the one that the token names.
 */
export class ReadPositions {
  readonly #codec: TokenCodec;
  readonly #headRevisions: HeadRevisions;
  readonly #index: Pick<ReadIndex, 'load'>;

  constructor(options: {
    readonly codec: TokenCodec;
    readonly headRevisions: HeadRevisions;
    readonly index: Pick<ReadIndex, 'load'>;
  }) {
    this.#codec = options.codec;
    this.#headRevisions = options.headRevisions;
    this.#index = options.index;
  }

  /**
   * The position for a read of `shard` with `token` ('' if none), at once where the shard's head revision is
   * known. Errors: TOKEN_INVALID (malformed, of another shard or epoch, beyond the head revision), thrown or
   * rejected; those of `ReadIndex.load`. Hot: allocates nothing when known and without a token.
   */
  resolve(shard: ShardKey, token: string): HeadRevision | Promise<HeadRevision> {
    const headRevision = this.#headRevisions.peek(shard.projectId, shard.tenantId);
    if (token === '') return headRevision ?? this.#load(shard, undefined);
    const position = this.#codec.decode(shard, token);
    if (headRevision !== undefined && isWithin(position, headRevision)) return headRevision;
    return this.#load(shard, position);
  }

  /**
   * Same as `resolve` where the head revision is known and above the token; undefined: it must be
   * queried. Errors: TOKEN_INVALID. Hot.
   */
  known(shard: ShardKey, token: string): HeadRevision | undefined {
    const headRevision = this.#headRevisions.peek(shard.projectId, shard.tenantId);
    if (headRevision === undefined || token === '') return headRevision;
    return isWithin(this.#codec.decode(shard, token), headRevision) ? headRevision : undefined;
  }

  /**
   * The position that `token` names. Its signature proves that it was returned to a caller, but not
   * that its epoch is still the present one. Errors: TOKEN_INVALID. Hot.
   */
  decode(shard: ShardKey, token: string): TokenPosition {
    return this.#codec.decode(shard, token);
  }

  /** The token of a position of `shard`: what `decode` reads. */
  encode(shard: ShardKey, { epoch, revision }: TokenPosition): string {
    return this.#codec.encode(shard, epoch, revision);
  }

  /** Whether what is known here shows that the shard has reached the position. Hot. */
  isKnownToReach({ projectId, tenantId }: ShardKey, epoch: number, revision: number): boolean {
    const headRevision = this.#headRevisions.known(projectId, tenantId);
    return (
      headRevision !== undefined &&
      epoch === headRevision.epoch &&
      revision <= headRevision.minRevision
    );
  }

  /**
   * Whether a later history of the shard than that of `epoch` is known here: it may have lost that
   * epoch's writes. Hot.
   */
  isKnownLost({ projectId, tenantId }: ShardKey, epoch: number): boolean {
    const headRevision = this.#headRevisions.known(projectId, tenantId);
    return headRevision !== undefined && headRevision.epoch > epoch;
  }

  /**
   * The position that `token` names, if `headRevision` has reached it. undefined: it has not, or it is no token of this shard. Hot.
   */
  tokenWithin(
    shard: ShardKey,
    token: string,
    headRevision: HeadRevision,
  ): TokenPosition | undefined {
    try {
      const position = this.#codec.decode(shard, token);
      return isWithin(position, headRevision) ? position : undefined;
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** Refuses a token that is not of `headRevision`, as just read. Errors: TOKEN_INVALID. */
  checkToken(shard: ShardKey, token: string, headRevision: HeadRevision): void {
    if (token !== '' && !isWithin(this.#codec.decode(shard, token), headRevision))
      throw tokenError();
  }

  async #load(shard: ShardKey, position: TokenPosition | undefined): Promise<HeadRevision> {
    const { headRevision } = await this.#index.load(shard.projectId, shard.tenantId);
    if (position !== undefined && !isWithin(position, headRevision)) throw tokenError();
    return headRevision;
  }
}

function isWithin(position: TokenPosition, headRevision: HeadRevision): boolean {
  return position.epoch === headRevision.epoch && position.revision <= headRevision.minRevision;
}
