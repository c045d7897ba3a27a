// Yields nanoseconds per hint of a notification: of this instance itself, of shards that are not held, and made.
// Run: npm run bench -- hints-own hints-dropped hints-make
import { HeldBySlots, HeldShards } from '../../src/protocol/held-shards.ts';
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import { hintReader } from '../../src/store/change-feed.ts';
import { type ChangeHint, payloadsOf } from '../../src/store/change-hints.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const SHARDS = 1_000;
const SLOTS = 3;
const HELD = 10_000;

const hints: readonly ChangeHint[] = listOf(SHARDS, (i) => ({
  shard: { projectId: 'production', tenantId: `tenant-${i * 7919}` },
  revision: 1_000_000 + i,
}));

function reader(sender: string): (payload: string) => void {
  const held = new HeldBySlots(SLOTS);
  const workers = held.memories.map((memory) => new HeldShards(memory));
  for (let i = 0; i < HELD; i++) {
    const shard = { projectId: 'production', tenantId: `other-${i}` };
    workers[slotOfShard(shard, SLOTS)]?.add(shard);
  }
  const counts = { own: 0, unknown: 0, held: 0, dropped: 0 };
  const isHeld = held.mayHold.bind(held);
  return hintReader({ sender, isHeld, onHint: () => undefined }, counts);
}

export const hintsOwn: MicroBench = {
  name: 'hints-own',
  yields: "ns per notification of the instance's own, 8 KB",
  operations: SHARDS,
  prepare() {
    const [payload] = payloadsOf('me', hints);
    mustHold(payload !== undefined && payload.length > 7_000, 'shards share a notification');
    const read = reader('me');
    return () => {
      for (let i = 0; i < SHARDS; i++) read(payload as string);
    };
  },
};

export const hintsDropped: MicroBench = {
  name: 'hints-dropped',
  yields: 'ns per hint of a shard that is not held, beside 10,000 that are',
  operations: SHARDS,
  prepare() {
    const payloads = payloadsOf('other', hints);
    const read = reader('me');
    return () => {
      for (const payload of payloads) read(payload);
    };
  },
};

export const hintsMake: MicroBench = {
  name: 'hints-make',
  yields: 'ns per hint put into a notification',
  operations: SHARDS,
  prepare: () => () => payloadsOf('other', hints).length,
};
