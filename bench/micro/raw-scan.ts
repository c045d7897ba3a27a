// Yields nanoseconds per Check body scanned, and per item of a BatchCheck body of 100.
// Run: npm run bench -- scan-check-json scan-batch-json
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { createRawFields } from '../../src/workers/raw/raw-fields.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;
const BATCH = 100;

const itemOf = (i: number): object => ({
  namespace: 'doc',
  object_id: `document-${i * 7919}`,
  relation: 'viewer',
  subject_user_id: `user-${i * 104_729}`,
});

export const scanCheckJson: MicroBench = {
  name: 'scan-check-json',
  yields: 'ns per JSON body of a Check scanned',
  operations: OPERATIONS,
  prepare() {
    const scanner = new JsonScanner(createRawFields(), 10_000);
    const bodies = listOf(OPERATIONS, (i) =>
      Buffer.from(JSON.stringify({ project_id: 'load', tenant_id: 't1', ...itemOf(i) })),
    );
    return () => {
      for (const body of bodies)
        mustHold(scanner.check(body, 0, body.length), 'a Check is scanned');
    };
  },
};

export const scanBatchJson: MicroBench = {
  name: 'scan-batch-json',
  yields: 'ns per item of a JSON BatchCheck of 100 scanned',
  operations: OPERATIONS,
  prepare() {
    const fields = createRawFields();
    const scanner = new JsonScanner(fields, 10_000);
    const bodies = listOf(OPERATIONS / BATCH, (b) => {
      const items = listOf(BATCH, (i) => itemOf(b * BATCH + i));
      return Buffer.from(JSON.stringify({ project_id: 'load', tenant_id: 't1', items }));
    });
    return () => {
      for (const body of bodies) {
        const isScanned = scanner.batchCheck(body, 0, body.length);
        mustHold(isScanned && fields.itemCount === BATCH, 'a BatchCheck is scanned');
      }
    };
  },
};
