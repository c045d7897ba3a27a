import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_CYCLE,
  BACKSTOP_DEPTH,
  type EvaluationTask,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          parent: {},
          editor: {},
          viewer: { union: [{ this: {} }, { computed: 'editor' }] },
        },
      },
      folder: { relations: { viewer: {} } },
    },
  }),
);
const READS = 10_000;

function generalOver(tuples: readonly string[], depthMax = 256): Evaluator['general'] {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  return new Evaluator(index, MODEL, options, systemClock).general;
}

function asked(
  tuples: readonly string[],
  question: string,
  depthMax?: number,
): EvaluationTask<boolean> {
  const query = { ...keyOf(question), contextJson: '' };
  const task = generalOver(tuples, depthMax).startCheck(query, 0, READS);
  expect(task.run(Infinity)).toBe('done');
  return task;
}
const ask = (tuples: readonly string[], question: string): boolean =>
  asked(tuples, question).result();

test('an object of another namespace is another object, whatever its id', () => {
  const tuples = ['doc:x#viewer@user:a', 'folder:x#viewer@user:b'];
  expect(ask(tuples, 'doc:x#viewer@doc:x#viewer')).toBe(true);
  expect(ask(tuples, 'doc:x#viewer@folder:x#viewer')).toBe(false);
  expect(ask(tuples, 'folder:x#viewer@doc:x#viewer')).toBe(false);
  expect(ask(tuples, 'doc:x#viewer@doc:y#viewer')).toBe(false);
  expect(ask([], 'doc:x#viewer@folder:x#viewer')).toBe(false);
});

test('an object that no tuple names is included in itself by the model alone', () => {
  expect(ask([], 'doc:new#viewer@doc:new#editor')).toBe(true);
  expect(ask([], 'doc:new#editor@doc:new#viewer')).toBe(false);
  expect(ask([], 'doc:new#viewer@doc:old#editor')).toBe(false);
  // Names of data that no model describes, and names that nothing knows.
  const data = ['team:t#lead@user:a', 'team:t#member@user:b'];
  expect(ask(data, 'team:new#lead@team:new#member')).toBe(false);
  expect(ask(data, 'team:new#lead@team:new#lead')).toBe(true);
  expect(ask(data, 'none:new#a@none:new#b')).toBe(false);
  expect(ask(data, 'doc:new#none@doc:new#nothing')).toBe(false);
});

test('an object itself may be held, and is held by nothing but what names it', () => {
  const tuples = ['doc:d#parent@folder:f#', 'folder:f#viewer@user:u'];
  expect(ask(tuples, 'doc:d#parent@folder:f#')).toBe(true);
  expect(ask(tuples, 'doc:d#parent@folder:g#')).toBe(false);
  expect(ask(tuples, 'doc:d#viewer@folder:f#')).toBe(false);
});

test('what nothing names is denied without a read', () => {
  const tuples = ['doc:d#viewer@user:u', 'team:t#lead@user:u'];
  for (const question of ['doc:none#viewer@user:u', 'none:d#viewer@user:u', 'doc:d#none@user:u']) {
    const task = asked(tuples, question);
    expect([question, task.result(), task.reads]).toEqual([question, false, 0]);
  }
  const task = asked(tuples, 'doc:d#viewer@user:nobody');
  expect(task.result()).toBe(false);
  expect(task.reads).toBeGreaterThan(0);
});

test('a deny tells what kept it from going on, a grant does not', () => {
  const circle = ['doc:d#viewer@team:a#x', 'team:a#x@team:b#x', 'team:b#x@team:a#x'];
  const denied = asked(circle, 'doc:d#viewer@user:u');
  expect([denied.result(), denied.backstops]).toEqual([false, BACKSTOP_CYCLE]);
  const deep = asked(circle, 'doc:d#viewer@user:u', 2);
  expect([deep.result(), deep.backstops]).toEqual([false, BACKSTOP_DEPTH]);
  // What is found after a bound was met on another way.
  const both = [
    'doc:d#viewer@team:a#x',
    'doc:d#viewer@team:z#x',
    'team:a#x@team:b#x',
    'team:b#x@team:c#x',
    'team:z#x@user:u',
  ];
  const granted = asked(both, 'doc:d#viewer@user:u', 2);
  expect([granted.result(), granted.backstops]).toEqual([true, 0]);
  const plain = asked(['doc:d#viewer@user:v'], 'doc:d#viewer@user:u');
  expect([plain.result(), plain.backstops]).toEqual([false, 0]);
});

test('an exhausted budget names the relation that was asked', () => {
  const general = generalOver(['doc:d#viewer@team:a#x', 'team:a#x@user:u']);
  const exhausted = (task: EvaluationTask<boolean>): unknown => {
    try {
      return task.run(Infinity);
    } catch (error) {
      return error;
    }
  };
  const metadata = { relation: 'doc#viewer', limit: '1' };
  for (const subject of ['user:v', 'team:b#x']) {
    const query = { ...keyOf(`doc:d#viewer@${subject}`), contextJson: '' };
    const error = exhausted(general.startCheck(query, 0, 1));
    if (subject === 'user:v') expect(error).toMatchObject({ reason: 'BUDGET_EXHAUSTED', metadata });
  }
  const { reader } = general;
  const ids = [
    reader.entityId(reader.nameId('doc'), 'd'),
    reader.nameId('viewer'),
    reader.entityId(EMPTY_NAME, 'v'),
  ] as const;
  expect(exhausted(general.startCheckIds(...ids, 0, 1))).toMatchObject({ metadata });
});
