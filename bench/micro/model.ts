// Yields nanoseconds per namespace model parsed, checked and compiled (the data set's, two namespaces of their own).
// Run: npm run bench -- model-compile
import { parseModel } from '../../src/model/namespace-model.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import type { MicroBench } from '../harness/micro-bench.ts';

export const modelCompile: MicroBench = {
  name: 'model-compile',
  yields: 'ns per model_json parsed, checked and compiled',
  operations: 1,
  prepare: () => () => parseModel(DATASET_MODEL_JSON),
};
