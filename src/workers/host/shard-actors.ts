import type { ShardKey } from '../../model/relation-tuple.ts';
import type { HeldShards } from '../../protocol/held-shards.ts';
import type { WatermarkSlot } from '../../protocol/published-watermarks.ts';
import { type ActorHost, ShardActor } from '../shard/shard-actor.ts';

/** The actors of one worker, by shard, and the slots for the shown revisions of those shards that have replicas. */
export class ShardActors {
  readonly #host: ActorHost;
  readonly #held: Pick<HeldShards, 'add' | 'remove'> | undefined;
  readonly #actors = new Map<string, Map<string, ShardActor>>();
  /** By key. Outlives the index. */
  readonly #watermarkSlots = new Map<string, WatermarkSlot>();

  /** `held` is kept up to date with the shards that have an actor; undefined where no reader needs it. */
  constructor(host: ActorHost, held: Pick<HeldShards, 'add' | 'remove'> | undefined) {
    this.#host = host;
    this.#held = held;
  }

  peek(shard: ShardKey): ShardActor | undefined {
    return this.#actors.get(shard.projectId)?.get(shard.tenantId);
  }

  /** The actor of a shard; made if absent. Hot. */
  of(shard: ShardKey): ShardActor {
    let tenants = this.#actors.get(shard.projectId);
    if (tenants === undefined) {
      tenants = new Map();
      this.#actors.set(shard.projectId, tenants);
    }
    let actor = tenants.get(shard.tenantId);
    if (actor === undefined) {
      const key = { projectId: shard.projectId, tenantId: shard.tenantId };
      // Before its snapshot is requested: see HeldShards.
      this.#held?.add(key);
      actor = new ShardActor(key, this.#host);
      actor.watermarkSlot = this.#watermarkSlots.get(keyOf(key)) ?? null;
      tenants.set(shard.tenantId, actor);
    }
    return actor;
  }

  *all(): Generator<ShardActor> {
    for (const tenants of this.#actors.values()) yield* tenants.values();
  }

  /** Publishes what the shard has shown in `slot`, since other workers answer for it as well. Returns its actor. */
  join(shard: ShardKey, slot: WatermarkSlot): ShardActor {
    this.#watermarkSlots.set(keyOf(shard), slot);
    const actor = this.of(shard);
    actor.watermarkSlot = slot;
    actor.publishWatermark();
    return actor;
  }

  /** Its owner answers alone. A replica in use goes later, as the index used least recently. */
  leave(shard: ShardKey, isOwner: boolean): void {
    this.#watermarkSlots.delete(keyOf(shard));
    const actor = this.peek(shard);
    if (actor === undefined) return;
    actor.watermarkSlot = null;
    if (!isOwner && actor.isEvictable) actor.evict();
  }

  /** Forgets an actor that has neither index nor jobs. Returns whether it was known. */
  forget(actor: ShardActor): boolean {
    const { projectId, tenantId } = actor.key;
    const tenants = this.#actors.get(projectId);
    if (tenants?.get(tenantId) !== actor) return false;
    tenants.delete(tenantId);
    this.#held?.remove(actor.key);
    if (tenants.size === 0) this.#actors.delete(projectId);
    return true;
  }
}

function keyOf({ projectId, tenantId }: ShardKey): string {
  return `${projectId}\0${tenantId}`;
}
