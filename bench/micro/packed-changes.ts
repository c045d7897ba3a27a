// Yields nanoseconds per change packed for the change log, and per change unpacked from it.
// Run: npm run bench -- changes-pack changes-unpack
import { packChanges, unpackChanges } from '../../src/model/packed-changes.ts';
import type { TupleChange } from '../../src/model/relation-tuple.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 100;

const changes: readonly TupleChange[] = listOf(OPERATIONS, (i) => ({
  op: i % 5 === 0 ? 'delete' : 'insert',
  tuple: {
    namespace: 'doc',
    objectId: `document-${i}`,
    relation: 'viewer',
    subject:
      i % 4 === 0
        ? { kind: 'set', namespace: 'group', objectId: `group-${i}`, relation: 'member' }
        : { kind: 'user', userId: `user-${i}` },
    ...(i % 10 === 1 ? { expiresAtUs: 1_900_000_000_000_000n } : {}),
  },
}));

export const changesPack: MicroBench = {
  name: 'changes-pack',
  yields: 'ns per change packed, 100 a list',
  operations: OPERATIONS,
  prepare: () => () => packChanges(changes),
};

export const changesUnpack: MicroBench = {
  name: 'changes-unpack',
  yields: 'ns per change unpacked, 100 a list',
  operations: OPERATIONS,
  prepare() {
    const text = packChanges(changes);
    mustHold(packChanges(unpackChanges(text)) === text, 'changes come back as they went');
    return () => unpackChanges(text);
  },
};
