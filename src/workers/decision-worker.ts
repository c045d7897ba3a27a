import type { MessagePort } from 'node:worker_threads';
import type { AnswerBatch, WorkerTask, WorkerTaskReply } from '../protocol/messages.ts';
import { PROTOCOL_VERSION } from '../protocol/messages.ts';
import { systemClock } from '../shared/clock.ts';
import { createPool } from '../store/pool.ts';
import { transferablesOf } from './answer-writer.ts';
import { PostgresShardSource } from './postgres-shard-source.ts';
import { ShardHost } from './shard-host.ts';
import { TupleShardIndex } from './shard-index.ts';
import type { WorkerSettings } from './worker-settings.ts';

let host: ShardHost | null = null;

/**
 * Entry of a decision worker. The first task greets and sets it up; every other one is a batch,
 * answered without awaiting. Errors: another protocol version, or a batch before the greeting.
 */
export default function decisionWorker(
  task: WorkerTask<MessagePort, WorkerSettings>,
): WorkerTaskReply {
  if (task.kind === 'batch') {
    if (host === null) throw new Error('a batch before the greeting');
    return { kind: 'batch', answers: host.handle(task.batch) };
  }
  const { protocolVersion, port, settings, underEvaluation } = task.hello;
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new Error(`the gateway speaks version ${protocolVersion}, not ${PROTOCOL_VERSION}`);
  }
  const pool = createPool(settings.database, {
    max: settings.poolMax,
    applicationName: `gatehouse-worker-${settings.slot}`,
  });
  host = new ShardHost({
    settings,
    clock: systemClock,
    source: new PostgresShardSource(pool),
    createIndex: () => new TupleShardIndex(settings.indexBytesMax),
    post: (answers: AnswerBatch) => port.postMessage(answers, transferablesOf(answers)),
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  return { kind: 'hello', hello: { protocolVersion: PROTOCOL_VERSION } };
}
