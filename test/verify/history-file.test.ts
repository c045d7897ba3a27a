import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { checkHistory } from '../../verify/checker/check-history.ts';
import { loadRun, saveRun } from '../../verify/checker/history-file.ts';
import { simulateHistory } from './simulated-history.ts';

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-history-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a saved run is checked as it was, and is small', () => {
  const shape = { operations: 500, clients: 6, unknownPercent: 2 };
  const history = simulateHistory({ seed: 'saved', fault: 'stale-read', ...shape });
  const path = join(folder, 'run.jsonl.gz');
  saveRun(path, { history, instances: 3 });
  const loaded = loadRun(path);
  expect(loaded.instances).toBe(3);
  const [before, after] = [history, loaded.history].map((one) => checkHistory(one));
  const verdictsOf = (report: typeof before) =>
    report?.violations.map(({ verdict }) => verdict.operation);
  expect(verdictsOf(after)).toEqual(verdictsOf(before));
  expect(verdictsOf(after)?.length).toBe(1);
  expect(after?.coverage).toEqual(before?.coverage);
  expect(statSync(path).size).toBeLessThan(100 * shape.operations);
});

test('another file is refused', () => {
  const path = join(folder, 'other.gz');
  writeFileSync(path, gzipSync('{"format":"something"}\n'));
  expect(() => loadRun(path)).toThrow('is no history of this version');
});
