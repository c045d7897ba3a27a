import { TupleIndex } from '../cache/tuple-index.ts';
import { rowFromTuple } from '../cache/tuple-row.ts';
import type { EvaluationTask } from '../engine/bound/evaluator-api.ts';
import { Evaluator } from '../engine/evaluator.ts';
import { suggestion } from '../model/model-json.ts';
import { problemOfTuple } from '../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../model/namespace/namespace-model.ts';
import { subjectText } from '../model/relation-tuple.ts';
import { AppError } from '../shared/app-error.ts';
import { type Clock, systemClock } from '../shared/time/clock.ts';
import type { Assertion, AssertionDocument, AssertionTest, PlacedTuple } from './assertion-file.ts';
import { textOfTuple } from './tuple-text.ts';

/** An assertion that does not hold. */
export type AssertionFailure = {
  readonly test: string;
  /** Query as text. */
  readonly assertion: string;
  readonly expected: string;
  readonly actual: string;
  /** Line in the file, from 1. */
  readonly line: number;
};

/** Result of the tests of one file. */
export type AssertionResult = {
  /** Number of assertions that were run. */
  readonly assertions: number;
  /** Failures of the file's own tuples, then those of each test in the order of the file. */
  readonly failures: readonly AssertionFailure[];
};

/** Limits of each evaluation. The service passes its own limits, not those of a project. */
export type AssertionLimits = { readonly depthMax: number; readonly readBudget: number };

const CACHE_BYTES_MAX = 8 * 1024 * 1024;
const INDEX_BYTES_MAX = 256 * 1024 * 1024;
/** Maximum number of ids that a failure shows of a list. */
const IDS_SHOWN_MAX = 20;
const SLICE_MS = 100;

/**
 * Runs the tests of a file against a model, with the engine that decides calls. Each test has its own index in memory,
 * with the tuples of the file and of the test. The model or one of these tuples must have each name in an assertion. A
 * misspelt name is denied, so a test that expects a deny would pass.
 */
export function runAssertions(
  model: NamespaceModel,
  document: AssertionDocument,
  limits: AssertionLimits,
): AssertionResult {
  const failures: AssertionFailure[] = [...refusedTuples(model, '(tuples of the file)', document)];
  let assertions = 0;
  for (const test of document.tests) {
    failures.push(...refusedTuples(model, test.name, test));
    const run = new TestRun(model, [...document.tuples, ...test.tuples], test, limits);
    for (const assertion of test.assertions) {
      assertions += 1;
      const actual = run.failureOf(assertion);
      if (actual === undefined) continue;
      const { line } = assertion;
      const expected = expectedText(assertion);
      failures.push({ test: test.name, assertion: textOf(assertion), expected, actual, line });
    }
  }
  return { assertions, failures };
}

/**
 * Failures for tuples that could not be written under the model. Tests over such tuples prove nothing about the model.
 */
function refusedTuples(
  model: NamespaceModel,
  test: string,
  { tuples }: { readonly tuples: readonly PlacedTuple[] },
): readonly AssertionFailure[] {
  return tuples.flatMap(({ tuple, line }) => {
    const problem = problemOfTuple(model, tuple);
    if (problem === undefined) return [];
    const assertion = `tuple ${textOfTuple(tuple)}`;
    const actual = `refused: ${problem.message}`;
    return [{ test, assertion, expected: 'admitted by the model', actual, line }];
  });
}

/** One test over its index. */
class TestRun {
  readonly #model: NamespaceModel;
  readonly #names: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #evaluator: Evaluator;
  readonly #nowMs: number;
  readonly #readBudget: number;

  constructor(
    model: NamespaceModel,
    tuples: readonly PlacedTuple[],
    { nowMs }: AssertionTest,
    { depthMax, readBudget }: AssertionLimits,
  ) {
    const clock: Clock = systemClock;
    const index = new TupleIndex({ bytesMax: INDEX_BYTES_MAX });
    for (const { tuple } of tuples) index.insert(rowFromTuple(tuple));
    const options = { depthMax, membershipBytesMax: CACHE_BYTES_MAX };
    this.#model = model;
    this.#names = namesOf(model, tuples);
    this.#evaluator = new Evaluator(index, model, options, clock);
    this.#nowMs = nowMs ?? clock.nowMs();
    this.#readBudget = readBudget;
  }

  /** Actual result as text if it differs from the expected one; undefined if the assertion holds. */
  failureOf(assertion: Assertion): string | undefined {
    try {
      return this.#unknownName(assertion) ?? this.#evaluate(assertion);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return `error: ${error.message}`;
    }
  }

  #evaluate(assertion: Assertion): string | undefined {
    const [nowMs, readBudget] = [this.#nowMs, this.#readBudget];
    if (assertion.kind === 'listObjects') {
      const task = this.#evaluator.startListObjects(assertion, nowMs, readBudget);
      return listDifference(assertion.expected, finished(task));
    }
    const { query, contextJson, expected } = assertion;
    const task = this.#evaluator.startCheck({ ...query, contextJson }, nowMs, readBudget);
    const actual = finished(task);
    return actual === expected ? undefined : String(actual);
  }

  /**
   * Error text for a namespace or relation that neither the model nor a tuple has. Undefined for known names, and for
   * any relation of an open namespace.
   */
  #unknownName(assertion: Assertion): string | undefined {
    const { namespace, relation } = assertion.kind === 'check' ? assertion.query : assertion;
    const relations = this.#names.get(namespace);
    if (relations === undefined) {
      const hint = suggestion(namespace, this.#names.keys());
      return `error: neither the model nor a tuple has a namespace "${namespace}"${hint}`;
    }
    if (relations.has(relation)) return undefined;
    if (this.#model.open.has(namespace)) return undefined;
    const hint = suggestion(relation, relations);
    return `error: neither the model nor a tuple has a relation "${relation}" of ${namespace}${hint}`;
  }
}

/** Relations by namespace, from the model and the tuples. */
function namesOf(
  model: NamespaceModel,
  tuples: readonly PlacedTuple[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  const add = (namespace: string, relation?: string): void => {
    const relations = names.get(namespace) ?? new Set();
    if (relation !== undefined) relations.add(relation);
    names.set(namespace, relations);
  };
  for (const [namespace, relations] of model.namespaces) {
    add(namespace);
    for (const relation of relations.keys()) add(namespace, relation);
  }
  for (const { tuple } of tuples) {
    add(tuple.namespace, tuple.relation);
    if (tuple.subject.kind === 'set') add(tuple.subject.namespace);
  }
  return names;
}

/** Runs a task to its end, in slices. Nothing else runs between the slices: no other work waits for this thread. */
function finished<T>(task: EvaluationTask<T>): T {
  while (task.run(performance.now() + SLICE_MS) === 'more') continue;
  return task.result();
}

function expectedText(assertion: Assertion): string {
  return assertion.kind === 'check' ? String(assertion.expected) : listText(assertion.expected);
}

function textOf(assertion: Assertion): string {
  if (assertion.kind === 'listObjects') {
    const { namespace, relation, userId } = assertion;
    const user = subjectText({ kind: 'user', userId });
    return `list_objects ${namespace}#${relation}@${user}`;
  }
  const { query, contextJson } = assertion;
  return `${textOfTuple(query)}${contextJson === '' ? '' : ` with ${contextJson}`}`;
}

/** Text of the actual list and how it differs; undefined if the lists are equal. Both are sorted. */
function listDifference(
  expected: readonly string[],
  actual: readonly string[],
): string | undefined {
  const there = new Set(actual);
  const meant = new Set(expected);
  const missing = expected.filter((id) => !there.has(id));
  const extra = actual.filter((id) => !meant.has(id));
  const parts = [
    ...(missing.length > 0 ? [`without ${listText(missing)}`] : []),
    ...(extra.length > 0 ? [`with ${listText(extra)} besides`] : []),
  ];
  return parts.length === 0 ? undefined : `${listText(actual)}: ${parts.join(', ')}`;
}

function listText(ids: readonly string[]): string {
  const more = ids.length > IDS_SHOWN_MAX ? `, and ${ids.length - IDS_SHOWN_MAX} more` : '';
  return `[${ids.slice(0, IDS_SHOWN_MAX).join(', ')}${more}]`;
}
