/** Bytes of the process a small tenant, what of them is accounted for, and CPU of its first Check and later ones, without PostgreSQL. [TENANTS] [LIMIT_MIB] [TUPLES] */
import type { ShardKey } from '../src/model/relation-tuple.ts';
import { RAW_FIELDS, type RequestBatch, rawOpcode } from '../src/protocol/messages.ts';
import { systemClock } from '../src/shared/time/clock.ts';
import type { StoredHeadRevision } from '../src/store/feed/changes.ts';
import type { SnapshotSink } from '../src/store/feed/snapshot.ts';
import { ShardHost } from '../src/workers/host/shard-host.ts';
import { WORKER_DEFAULTS } from '../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../src/workers/indexes/packing-index.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { MemoryShardSource } from '../test/workers/memory-shard-source.ts';
import { numberArgument, report } from './harness/options.ts';

const tenants = numberArgument(0, 10_000);
const limitMib = numberArgument(1, 1_024);
const tuplesEach = numberArgument(2, 20);
const GATHERED = 64;
const head: StoredHeadRevision = {
  epoch: 1,
  revision: 1,
  forkId: '1',
  retainedFrom: 1,
  settingsVersion: 0,
};
const COLUMNS = 9;
/** The row at work, as a snapshot has one. */
const row = Buffer.alloc(256);
const bounds = new Int32Array(COLUMNS * 2).fill(-1);
let end = 0;

/** Makes the rows of a shard when they are asked for, so that the truth takes no memory here. */
class MadeUpShards extends MemoryShardSource {
  readonly loadSlots = GATHERED;

  override loadSnapshot(shard: ShardKey, sink: SnapshotSink): Promise<StoredHeadRevision> {
    sink.begin(head);
    const count = shard.tenantId === 'one' ? tuplesEach * tenants : tuplesEach;
    for (let i = 0; i < count; i++) {
      end = 0;
      const texts = ['doc', `d${i >> 1}`, i & 1 ? 'viewer' : 'editor', '', `user-${i % 1_000}`, ''];
      texts.forEach((text, c) => {
        bounds[2 * c] = end;
        end += row.write(text, end, 'latin1');
        bounds[2 * c + 1] = end;
      });
      sink.row(row, bounds);
    }
    return Promise.resolve(head);
  }
}

function newHost(): ShardHost {
  const indexBytesMax = limitMib * 1024 * 1024;
  const host = new ShardHost({
    settings: { ...WORKER_DEFAULTS, poolMax: 4, indexBytesMax, pollMs: 1e9 },
    clock: systemClock,
    source: new MadeUpShards(),
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: () => undefined,
    underEvaluation: new Float64Array(1),
  });
  const modelJson = DATASET_MODEL_JSON;
  const control = {
    kind: 'setModel',
    ackId: 0,
    projectId: 'p',
    modelVersion: 1,
    modelJson,
  } as const;
  host.handle({ ...checksOf([]), control: [control] });
  host.start();
  return host;
}

/** A check in each of the shards. */
function checksOf(tenantIds: readonly string[]): RequestBatch {
  const item = { namespace: 'doc', object_id: 'd1', relation: 'viewer', subject_user_id: 'user-2' };
  const body = Buffer.from(JSON.stringify(item));
  const raw = new Float64Array(tenantIds.length * RAW_FIELDS);
  const opcode = rawOpcode('check', 'json');
  tenantIds.forEach((_, i) => {
    raw.set([i + 1, opcode, i, 1, Infinity, 0, body.length, 0], i * RAW_FIELDS);
  });
  const expected = { expectedProjectId: '', expectedTenantId: '' };
  const position = { settingsVersion: 1, epoch: 1, forkId: '', isHeldOnly: false };
  return {
    scopes: tenantIds.map((tenantId) => ({
      projectId: 'p',
      tenantId,
      modelVersion: 1,
      readBudget: 10_000,
      ...position,
      ...expected,
    })),
    tokens: [''],
    raw,
    bodies: body,
    requests: [],
    cancelled: [],
    control: [],
  };
}

const takenBytes = (): number => {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  residentBytes = rss;
  return heapUsed + external;
};
let residentBytes = 0;
const idOf = (i: number): string => `tenant-${i}`;

/** Asks `count` shards, 64 a message, in this order; CPU microseconds each. */
async function ask(host: ShardHost, count: number, of: (i: number) => number): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += GATHERED) {
    const ids = Array.from({ length: Math.min(GATHERED, count - i) }, (_, k) => idOf(of(i + k)));
    host.handle(checksOf(ids));
    // Loads and turns.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(before);
  return Math.round(((user + system) / count) * 10) / 10;
}

const host = newHost();
await ask(host, 512, (i) => tenants + i);
const before = { taken: takenBytes(), accounted: host.indexBytes, resident: residentBytes };
const coldMicros = await ask(host, tenants, (i) => i);
const resident = process.memoryUsage().rss - before.resident;
const taken = takenBytes() - before.taken;
const accounted = host.indexBytes - before.accounted;
const again = await ask(host, Math.min(tenants, 10_000), (i) => (i * 7_919) % tenants);
const hot = await ask(host, Math.min(tenants, 10_000), (i) => i % 100);
let held = 0;
for (let i = 0; i < tenants; i++) if (host.actor({ projectId: 'p', tenantId: idOf(i) })) held += 1;
const { indexBytes } = host;
host.stop();

const large = newHost();
const oneBefore = takenBytes();
large.handle(checksOf(['one']));
await new Promise((resolve) => setTimeout(resolve, 100));
const one = takenBytes() - oneBefore;
large.stop();
report({
  tenants,
  tuplesEach,
  held,
  bytesEach: Math.round(taken / held),
  indexBytes,
  accountedShare: accounted / taken,
  accountedOfResident: accounted / resident,
  residentOfLimit: resident / limitMib / 1024 / 1024,
  firstCheckUs: coldMicros,
  laterCheckUs: again,
  hotCheckUs: hot,
  bytesPerTupleOfOneLargeTenant: one / tuplesEach / tenants,
});
