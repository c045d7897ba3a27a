/**
 * `@gatehouse/engine`: Gatehouse's decisions in one's own process. These names are the package; what else its files export
 * may change with any release.
 */
export { Engine } from './engine.ts';
export { EngineError, type ErrorReason, type Problem } from './engine-error.ts';
export type { EngineLimits, EngineOptions } from './engine-options.ts';
export { formatGate, type Model, parseModel } from './model.ts';
export { runTests, type TestOptions } from './run-tests.ts';
export type {
  CheckQuery,
  Decision,
  Derivation,
  ExplainOptions,
  Explanation,
  JsonObject,
  JsonValue,
  ListOptions,
  ObjectList,
  Obstacle,
  QueryOptions,
  RelationList,
  Subject,
  SubjectList,
  SubjectSet,
  SubjectsQuery,
  TestFailure,
  TestResult,
  Tuple,
  UndecidedReason,
  Wildcard,
} from './types.ts';
