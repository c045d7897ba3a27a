import { TupleIndex } from '../../../cache/tuple-index.ts';
import { rowFromTuple } from '../../../cache/tuple-row.ts';
import type { EvaluationTask } from '../../../engine/bound/evaluator-api.ts';
import { Evaluator } from '../../../engine/evaluator.ts';
import type { ImportedSuite } from '../../../language/peers/import-suite.ts';
import { checkModelDocument } from '../../../model/namespace/namespace-model.ts';
import { systemClock } from '../../../shared/time/clock.ts';

const READS_MAX = 1_000_000;
const DEPTH_MAX = 256;
const CACHE_BYTES_MAX = 1024 * 1024;
const INDEX_BYTES_MAX = 256 * 1024 * 1024;

export type SuiteResult = {
  /** Checks and lists that were evaluated. */
  readonly assertions: number;
  /** Assertions whose answer differs, one line each. */
  readonly differences: readonly string[];
};

/** Evaluates the assertions of a suite by the engine of the service over an index in memory. */
export function runSuite(modelJson: string, suite: ImportedSuite): SuiteResult {
  const { model } = checkModelDocument(modelJson);
  const differences: string[] = [];
  let assertions = 0;
  for (const test of suite.tests) {
    const index = new TupleIndex({ bytesMax: INDEX_BYTES_MAX });
    for (const tuple of [...suite.tuples, ...test.tuples]) index.insert(rowFromTuple(tuple));
    const options = { depthMax: DEPTH_MAX, membershipBytesMax: CACHE_BYTES_MAX };
    const evaluator = new Evaluator(index, model, options, systemClock);
    const nowMs = systemClock.nowMs();
    for (const check of test.checks) {
      assertions += 1;
      const isAllowed = finished(evaluator.startCheck(check, nowMs, READS_MAX));
      if (isAllowed === check.isAllowed) continue;
      differences.push(
        `${check.place}: ${JSON.stringify(check)} is ${isAllowed ? 'allowed' : 'denied'}`,
      );
    }
    for (const list of test.lists) {
      assertions += 1;
      const ids = finished(evaluator.startListObjects(list, nowMs, READS_MAX));
      if (JSON.stringify(ids) === JSON.stringify(list.ids)) continue;
      differences.push(`${list.place}: ${JSON.stringify(list)} lists ${JSON.stringify(ids)}`);
    }
  }
  return { assertions, differences };
}

function finished<Result>(task: EvaluationTask<Result>): Result {
  while (task.run(Number.POSITIVE_INFINITY) === 'more');
  return task.result();
}
