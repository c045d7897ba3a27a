import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEPLOYMENT_STATUSES, foldRecords, type DeploymentRecord } from './deployment-record.ts';

const id = fc.integer({ min: 0, max: 9 }).map((number) => `dpl-${String(number).repeat(24)}`);
const record: fc.Arbitrary<DeploymentRecord> = fc.record({
  id,
  runId: fc.string(),
  workflow: fc.string(),
  jobId: fc.string(),
  status: fc.constantFrom(...DEPLOYMENT_STATUSES),
  environment: fc.string(),
  ref: fc.string(),
  sha: fc.string(),
  jobs: fc.constant([]),
  createdAt: fc.constant('2026-01-01T00:00:00.000Z'),
  updatedAt: fc.constant('2026-01-01T00:00:00.000Z'),
});
const line = fc.oneof({ weight: 4, arbitrary: record }, { weight: 1, arbitrary: fc.jsonValue() });

test('folding keeps the last record of each id, in the order in which the ids first came', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 60, size: 'max' }), (lines) => {
      // The obvious way: look through all lines for each id.
      const isRecord = (value: unknown): value is DeploymentRecord =>
        typeof value === 'object' && value !== null && 'runId' in value;
      const records = lines.filter(isRecord);
      const ids = records.map((one) => one.id).filter((one, at, all) => all.indexOf(one) === at);
      const expected = ids.map((one) => records.findLast((other) => other.id === one));
      let foreign = 0;
      const folded = foldRecords(lines, () => foreign++);
      expect([...folded.values()]).toEqual(expected);
      expect([...folded.keys()]).toEqual(ids);
      expect(foreign).toBe(lines.length - records.length);
    }),
    { numRuns: 300 },
  );
});

test('folding what was folded changes nothing, wherever it was cut', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 60, size: 'max' }), fc.nat(60), (lines, cut) => {
      const none = (): void => undefined;
      const whole = foldRecords(lines, none);
      const begin = foldRecords(lines.slice(0, cut), none).values();
      expect(foldRecords([...begin, ...lines.slice(cut)], none)).toEqual(whole);
    }),
    { numRuns: 300 },
  );
});
