import type { MessagePort } from 'node:worker_threads';
import { BatchTimes } from '../../protocol/batch-times.ts';
import { HeldShards } from '../../protocol/held-shards.ts';
import type { HelloMessage, HelloReply } from '../../protocol/messages.ts';
import { PROTOCOL_VERSION } from '../../protocol/messages.ts';
import { createClockMemory, DatabaseClock } from '../../shared/time/database-clock.ts';
import { DeploymentWatch } from '../../store/migrations/deployment-watch.ts';
import { createPool } from '../../store/postgres/pool.ts';
import { PackingShardIndex } from '../indexes/packing-index.ts';
import { PostgresShardSource } from '../source/postgres-shard-source.ts';
import { ShardHost } from './shard-host.ts';
import { postAnswers, serveBatches } from './worker-port.ts';
import type { WorkerSettings } from './worker-settings.ts';

/**
 * Entry of a decision worker. Its one task greets and sets it up; batches then come through the
 * port. Errors: another protocol version.
 */
export default function decisionWorker(
  hello: HelloMessage<MessagePort, WorkerSettings>,
): HelloReply {
  const { protocolVersion, port, settings, underEvaluation } = hello;
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new Error(`the gateway speaks version ${protocolVersion}, not ${PROTOCOL_VERSION}`);
  }
  const pool = createPool(settings.database, {
    max: settings.poolMax,
    applicationName: `gatehouse-worker-${settings.slot}`,
    prepare: new DeploymentWatch().check,
  });
  const held = settings.heldMemory === undefined ? undefined : new HeldShards(settings.heldMemory);
  held?.clear();
  const host = new ShardHost({
    settings,
    clock: new DatabaseClock(settings.clockMemory ?? createClockMemory()),
    source: new PostgresShardSource(pool, settings.loadTimeoutMs),
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: (answers) => postAnswers(port, 0, answers),
    held,
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  const { timesMemory } = settings;
  const times = timesMemory === undefined ? null : new BatchTimes(timesMemory);
  serveBatches(port, (batch) => host.handle(batch), times);
  return { protocolVersion: PROTOCOL_VERSION };
}
