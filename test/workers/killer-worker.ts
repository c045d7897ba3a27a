// Entry of a decision worker whose thread exits while it evaluates the object `killer`.
import type { MessagePort } from 'node:worker_threads';
import type { EntityLookups, TupleReader } from '../../src/model/tuple-reader.ts';
import type { HelloMessage, HelloReply } from '../../src/protocol/messages.ts';
import { PROTOCOL_VERSION } from '../../src/protocol/messages.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import { postAnswers, serveBatches } from '../../src/workers/host/worker-port.ts';
import type { WorkerSettings } from '../../src/workers/host/worker-settings.ts';
import type { ShardIndex } from '../../src/workers/shard/ports.ts';
import { packingIndex, smallShards } from './folding-index.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import { viewer } from './pool-fixture.ts';

function killerReader(reader: TupleReader): TupleReader {
  return new Proxy(reader, {
    get(target, property) {
      if (property === 'readEntityIds') {
        return (bytes: Uint8Array, lookups: EntityLookups, count: number) => {
          for (let i = 0; i < count; i++) {
            const id = bytes.subarray(lookups.starts[i], lookups.ends[i]);
            if (Buffer.from(id).toString() === 'killer') process.exit(3);
          }
          target.readEntityIds(bytes, lookups, count);
        };
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function killerIndex(bytesMax: number): ShardIndex {
  const index = packingIndex({ isInUse: true }, smallShards(bytesMax, 0));
  let reader: TupleReader | null = null;
  return {
    // Once the rows have come: before, there is none.
    get reader() {
      return (reader ??= killerReader(index.reader));
    },
    get bytes() {
      return index.bytes;
    },
    get tupleCount() {
      return index.tupleCount;
    },
    insertRow: (bytes, bounds) => index.insertRow(bytes, bounds),
    apply: (changes) => index.apply(changes),
    startAudit: (revisionOf) => index.startAudit(revisionOf),
    endAudit: () => index.endAudit(),
  };
}

export default function killerWorker(hello: HelloMessage<MessagePort, WorkerSettings>): HelloReply {
  const { port, settings, underEvaluation } = hello;
  const source = new MemoryShardSource();
  for (let i = 0; i < 8; i++) {
    source.commit({ projectId: 'p', tenantId: `t${i}` }, [viewer('insert', 'a', 'u')]);
  }
  const host = new ShardHost({
    settings,
    clock: systemClock,
    source,
    createIndex: () => killerIndex(settings.indexBytesMax),
    post: (answers) => postAnswers(port, 0, answers),
    underEvaluation: new Float64Array(underEvaluation),
  });
  host.start();
  serveBatches(port, (batch) => host.handle(batch));
  return { protocolVersion: PROTOCOL_VERSION };
}
