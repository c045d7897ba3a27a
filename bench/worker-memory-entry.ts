// Entry of a decision worker over the dataset in memory: the real host, actors and messages.
import type { MessagePort } from 'node:worker_threads';
import type { WorkerTask, WorkerTaskReply } from '../src/protocol/messages.ts';
import { PROTOCOL_VERSION } from '../src/protocol/messages.ts';
import { systemClock } from '../src/shared/clock.ts';
import { transferablesOf } from '../src/workers/answer-writer.ts';
import { ShardHost } from '../src/workers/shard-host.ts';
import { TupleShardIndex } from '../src/workers/shard-index.ts';
import type { WorkerSettings } from '../src/workers/worker-settings.ts';
import { World } from './dataset/world.ts';
import { BENCH_SEED, memorySourceOf } from './worker-data.ts';

let host: ShardHost | null = null;

export default function memoryWorker(
  task: WorkerTask<MessagePort, WorkerSettings>,
): WorkerTaskReply {
  if (task.kind === 'batch') {
    if (host === null) throw new Error('a batch before the greeting');
    return { kind: 'batch', answers: host.handle(task.batch) };
  }
  const { port, settings, underEvaluation } = task.hello;
  const scale = Number(process.env['BENCH_SCALE'] ?? '1');
  host = new ShardHost({
    settings,
    clock: systemClock,
    source: memorySourceOf(new World(scale, BENCH_SEED)),
    createIndex: () => new TupleShardIndex(settings.indexBytesMax),
    post: (answers) => port.postMessage(answers, transferablesOf(answers)),
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  return { kind: 'hello', hello: { protocolVersion: PROTOCOL_VERSION } };
}
