import type { ShardKey } from '../model/relation-tuple.ts';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** Between the two ids; cannot occur in either of them. */
const SEPARATOR = 0x00;

/**
 * Hash of a shard: FNV-1a over the UTF-16 units of project, separator and tenant, finished with
 * the mixer of MurmurHash3 so that a modulus sees every input bit. Pure: the same on every thread,
 * instance and start, because an index is only warm where its shard is routed to. Unsigned 32 bits.
 * O(length), allocates nothing.
 */
export function shardHash(key: ShardKey): number {
  let hash = mixText(FNV_OFFSET, key.projectId);
  hash = Math.imul(hash ^ SEPARATOR, FNV_PRIME);
  hash = mixText(hash, key.tenantId);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** The slot (0 … slotCount-1) that owns a shard. Depends on the key and the count only: a crash moves no shard. */
export function slotOfShard(key: ShardKey, slotCount: number): number {
  return shardHash(key) % slotCount;
}

function mixText(hash: number, text: string): number {
  let mixed = hash;
  for (let i = 0; i < text.length; i++) {
    mixed = Math.imul(mixed ^ text.charCodeAt(i), FNV_PRIME);
  }
  return mixed;
}
