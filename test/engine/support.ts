import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  CHECK_ALLOWED,
  CHECK_GENERAL,
  type EvaluationTask,
} from '../../src/engine/bound/evaluator-api.ts';
import { FALSE, TRUE } from '../../src/engine/bound/scope.ts';
import type { Evaluator } from '../../src/engine/evaluator.ts';
import { type LazyContext, parseContext } from '../../src/model/conditions/conditions.ts';
import type { CheckQuery, RelationTuple, TupleKey } from '../../src/model/relation-tuple.ts';
import type { TupleReader } from '../../src/model/tuple-reader.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { SimpleTupleReader } from '../support/simple-tuple-reader.ts';

export const READS_DEFAULT = 10_000;

/** How many checks of `checkBoth` the hot path answered, and how many it left to the general one. */
export const hotAnswers = { hot: 0, general: 0 };
/** The same of exact usersets and objects. */
export const exactAnswers = { hot: 0, general: 0 };

/** Runs a task to its end in slices that end as soon as they may. */
export function finish<T>(task: EvaluationTask<T>): T {
  while (task.run(0) === 'more') {
    // Each slice ends at the first look at the clock.
  }
  return task.result();
}

/** A context that is parsed when it is asked for; null for none. */
export function contextOf(json: string): LazyContext | null {
  return json === '' ? null : { value: () => parseContext(json) };
}

/** The general answer; for a user also the hot one, which must not differ. */
export function checkBoth(
  evaluator: Evaluator,
  reader: TupleReader,
  input: CheckQuery,
  nowMs: number,
  reads = READS_DEFAULT,
): boolean {
  const allowed = finish(evaluator.startCheck(input, nowMs, reads));
  if (input.subject.kind === 'set' && input.isExact === true) {
    const decided = finish(evaluator.general.startDecision(input, nowMs, reads));
    // Once with nothing remembered, and once with what that left.
    for (let times = 0; times < 2; times++) {
      const code = evaluator.checkExact(input, nowMs, reads, contextOf(input.contextJson));
      exactAnswers[code === CHECK_GENERAL ? 'general' : 'hot'] += 1;
      const value = code === CHECK_ALLOWED ? TRUE : FALSE;
      if (code === CHECK_GENERAL || value === decided) continue;
      throw new Error(`hot path says ${code} instead of ${decided}: ${JSON.stringify(input)}`);
    }
  }
  if (input.subject.kind === 'user') {
    const { contextJson } = input;
    const namespace = reader.nameId(input.namespace);
    const entity = namespace > 0 ? reader.entityId(namespace, input.objectId) : 0;
    const relation = reader.nameId(input.relation);
    const user = reader.entityId(EMPTY_NAME, input.subject.userId);
    const context = contextOf(contextJson);
    const code = evaluator.checkUser(entity, relation, user, nowMs, reads, context);
    hotAnswers[code === CHECK_GENERAL ? 'general' : 'hot'] += 1;
    const hot =
      code === CHECK_GENERAL
        ? finish(evaluator.startCheckIds(entity, relation, user, nowMs, reads, contextJson))
        : code === CHECK_ALLOWED;
    if (hot !== allowed) throw new Error(`hot path says ${hot}: ${JSON.stringify(input)}`);
  }
  return allowed;
}

/** An index that tests can write to, whichever it is. */
export type WritableReader = {
  readonly reader: TupleReader;
  readonly insert: (tuple: RelationTuple) => void;
  readonly remove: (key: TupleKey) => void;
};

/** The index that ships. */
export function createIndex(): WritableReader {
  const reader = new TupleIndex();
  return {
    reader,
    insert: (tuple) => void reader.applyChange('insert', tuple),
    remove: (key) => void reader.applyChange('delete', key),
  };
}

/** The same port on plain maps. */
export function createSimpleIndex(): WritableReader {
  const reader = new SimpleTupleReader();
  return {
    reader,
    insert: (tuple) => reader.insert(tuple),
    remove: (key) => reader.delete(key),
  };
}
