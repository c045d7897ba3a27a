import { type TokenCodec, type TokenPosition, tokenError } from '../model/consistency-token.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import type { ReadIndex } from './read-index.ts';
import type { ShardHead, ShardHeads } from './shard-heads.ts';

/**
 * From which position on a read may answer: the head that this process knows, which is at or above
 * every write that it acknowledged, and above the one that the request's token names.
 */
export class ReadPositions {
  readonly #codec: TokenCodec;
  readonly #heads: ShardHeads;
  readonly #index: Pick<ReadIndex, 'load'>;

  constructor(options: {
    readonly codec: TokenCodec;
    readonly heads: ShardHeads;
    readonly index: Pick<ReadIndex, 'load'>;
  }) {
    this.#codec = options.codec;
    this.#heads = options.heads;
    this.#index = options.index;
  }

  /**
   * The position for a read of `shard` with `token` ('' is none), at once where the shard's head is
   * known. Errors: TOKEN_INVALID (malformed, of another shard or epoch, beyond the head), thrown or
   * rejected; those of `ReadIndex.load`. Hot: allocates nothing when known and without a token.
   */
  resolve(shard: ShardKey, token: string): ShardHead | Promise<ShardHead> {
    const head = this.#heads.peek(shard.projectId, shard.tenantId);
    if (token === '') return head ?? this.#load(shard, undefined);
    const position = this.#codec.decode(shard, token);
    if (head !== undefined && isWithin(position, head)) return head;
    return this.#load(shard, position);
  }

  /** As `resolve` where the head is known and above the token; undefined: it is to be looked for. Errors: TOKEN_INVALID. Hot. */
  known(shard: ShardKey, token: string): ShardHead | undefined {
    const head = this.#heads.peek(shard.projectId, shard.tenantId);
    if (head === undefined || token === '') return head;
    return isWithin(this.#codec.decode(shard, token), head) ? head : undefined;
  }

  /**
   * The position that `token` names. That somebody was told of it is proven, but not that its epoch is
   * still the present one. Errors: TOKEN_INVALID. Hot.
   */
  decode(shard: ShardKey, token: string): TokenPosition {
    return this.#codec.decode(shard, token);
  }

  /** The token of a position of `shard`: what `decode` reads. */
  encode(shard: ShardKey, { epoch, seq }: TokenPosition): string {
    return this.#codec.encode(shard, epoch, seq);
  }

  /** Whether what is known here shows that the shard has reached the position. Hot. */
  isKnownToReach({ projectId, tenantId }: ShardKey, epoch: number, seq: number): boolean {
    const head = this.#heads.known(projectId, tenantId);
    return head !== undefined && epoch === head.epoch && seq <= head.minSeq;
  }

  /** Whether a later history of the shard is known here than that of `epoch`, which may have lost what it says. Hot. */
  isKnownLost({ projectId, tenantId }: ShardKey, epoch: number): boolean {
    const head = this.#heads.known(projectId, tenantId);
    return head !== undefined && head.epoch > epoch;
  }

  /**
   * The position that `token` names, if `head` has reached it. undefined: it has not, or it is no token of this shard. Hot.
   */
  tokenWithin(shard: ShardKey, token: string, head: ShardHead): TokenPosition | undefined {
    try {
      const position = this.#codec.decode(shard, token);
      return isWithin(position, head) ? position : undefined;
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** Refuses a token that is not of `head`, as just read. Errors: TOKEN_INVALID. */
  checkToken(shard: ShardKey, token: string, head: ShardHead): void {
    if (token !== '' && !isWithin(this.#codec.decode(shard, token), head)) throw tokenError();
  }

  async #load(shard: ShardKey, position: TokenPosition | undefined): Promise<ShardHead> {
    const { head } = await this.#index.load(shard.projectId, shard.tenantId);
    if (position !== undefined && !isWithin(position, head)) throw tokenError();
    return head;
  }
}

function isWithin(position: TokenPosition, head: ShardHead): boolean {
  return position.epoch === head.epoch && position.seq <= head.minSeq;
}
