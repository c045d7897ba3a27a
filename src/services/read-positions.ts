import { type TokenCodec, tokenError } from '../model/consistency-token.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import type { ShardHead, ShardHeads } from './shard-heads.ts';

/**
 * From which position on a read may answer: the head that this process knows, which is at or above
 * every write that it acknowledged, and above the one that the request's token names.
 */
export class ReadPositions {
  readonly #codec: TokenCodec;
  readonly #heads: ShardHeads;

  constructor(options: { readonly codec: TokenCodec; readonly heads: ShardHeads }) {
    this.#codec = options.codec;
    this.#heads = options.heads;
  }

  /**
   * The position for a read of `shard` with `token` ('' is none), at once where the shard's head is
   * known. Errors: TOKEN_INVALID (malformed, of another shard or epoch, beyond the head), thrown or
   * rejected; those of `ShardHeads.load`. Hot: allocates nothing when known and without a token.
   */
  resolve(shard: ShardKey, token: string): ShardHead | Promise<ShardHead> {
    const head = this.#heads.peek(shard.projectId, shard.tenantId);
    if (token === '') return head ?? this.#heads.load(shard.projectId, shard.tenantId);
    const position = this.#codec.decode(shard, token);
    if (head !== undefined && position.epoch === head.epoch && position.seq <= head.minSeq) {
      return head;
    }
    return this.#loadFor(shard, position.epoch, position.seq);
  }

  async #loadFor(shard: ShardKey, epoch: number, seq: number): Promise<ShardHead> {
    const head = await this.#heads.load(shard.projectId, shard.tenantId);
    if (epoch !== head.epoch || seq > head.minSeq) throw tokenError();
    return head;
  }
}
