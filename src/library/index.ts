/**
 * `@gatehouse/engine`: Gatehouse's decisions in one's own process. The package consists of these names. Other exports
 * of its files may change with any release. Some names are renamed here, since the project has other types of the same
 * name.
 */
export { Engine } from './engine.ts';
export { EngineError, type ErrorReason, type SourceProblem as Problem } from './engine-error.ts';
export type { EngineLimits, EngineOptions } from './engine-options.ts';
export type { JsonObject, JsonValue } from '../shared/json.ts';
export { formatGate, type Model, parseModel } from './model.ts';
export { runTests, type TestOptions } from './run-tests.ts';
export type {
  EngineQuery as CheckQuery,
  EngineDecision as Decision,
  EngineDerivation as Derivation,
  ExplainOptions,
  EngineExplanation as Explanation,
  ListOptions,
  ObjectList,
  EngineObstacle as Obstacle,
  EngineQueryOptions as QueryOptions,
  RelationList,
  EngineSubject as Subject,
  SubjectList,
  SubjectSet,
  SubjectsQuery,
  TestFailure,
  TestResult,
  EngineTuple as Tuple,
  UndecidedCause as UndecidedReason,
  Wildcard,
} from './types.ts';
