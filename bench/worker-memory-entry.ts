// Entry of a decision worker over the dataset in memory: the real host, actors and messages.
import type { MessagePort } from 'node:worker_threads';
import type { HelloMessage, HelloReply } from '../src/protocol/messages.ts';
import { PROTOCOL_VERSION } from '../src/protocol/messages.ts';
import { systemClock } from '../src/shared/clock.ts';
import { PackingShardIndex } from '../src/workers/shard/packing-index.ts';
import { ShardHost } from '../src/workers/shard/shard-host.ts';
import { postAnswers, serveBatches } from '../src/workers/shard/worker-port.ts';
import type { WorkerSettings } from '../src/workers/shard/worker-settings.ts';
import { World } from '../test/support/dataset/world.ts';
import { BENCH_SEED, memorySourceOf } from './worker-data.ts';

export default function memoryWorker(hello: HelloMessage<MessagePort, WorkerSettings>): HelloReply {
  const { port, settings, underEvaluation } = hello;
  const scale = Number(process.env['BENCH_SCALE'] ?? '1');
  const host = new ShardHost({
    settings,
    clock: systemClock,
    source: memorySourceOf(new World(scale, BENCH_SEED)),
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: (answers) => postAnswers(port, 0, answers),
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  serveBatches(port, (batch) => host.handle(batch));
  return { protocolVersion: PROTOCOL_VERSION };
}
