// Entry of a decision worker in whose indexes any other thread of the process can flip a bit.
import { BroadcastChannel, type MessagePort } from 'node:worker_threads';
import type { TupleIndex } from '../../src/cache/tuple-index.ts';
import type { HelloMessage, HelloReply } from '../../src/protocol/messages.ts';
import { PROTOCOL_VERSION } from '../../src/protocol/messages.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { createPool } from '../../src/store/postgres/pool.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import { postAnswers, serveBatches } from '../../src/workers/host/worker-port.ts';
import type { WorkerSettings } from '../../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { PostgresShardSource } from '../../src/workers/source/postgres-shard-source.ts';
import { type FlippedPart, flipBit } from '../support/flip-bit.ts';

export default function flippingWorker(
  hello: HelloMessage<MessagePort, WorkerSettings>,
): HelloReply {
  const { port, settings, underEvaluation } = hello;
  const pool = createPool(settings.database, { max: settings.poolMax, applicationName: 'test' });
  let latest: PackingShardIndex | null = null;
  const host = new ShardHost({
    settings,
    clock: systemClock,
    source: new PostgresShardSource(pool, settings.loadTimeoutMs),
    createIndex: (shared, user) => (latest = new PackingShardIndex(shared, user)),
    post: (answers) => postAnswers(port, 0, answers),
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  const channel = new BroadcastChannel('flip-bit');
  channel.addEventListener('message', (message) => {
    const part = (message as unknown as { data: FlippedPart }).data;
    if (latest !== null) flipBit(latest.reader as TupleIndex, part);
  });
  serveBatches(port, (batch) => host.handle(batch));
  return { protocolVersion: PROTOCOL_VERSION };
}
