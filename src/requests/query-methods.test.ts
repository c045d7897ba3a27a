import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import type { QueryMethod } from '../protocol/queries.ts';
import { QUERY_METHODS, readQuery } from './query-methods.ts';

const question = {
  namespace: 'doc',
  object_id: 'd',
  relation: 'viewer',
  subject: { user_id: 'u' },
};

/** How many steps it takes to check a request. */
function stepsOf(method: QueryMethod, json: JsonValue): number {
  const request = fromJson(QUERY_METHODS[method].request, json);
  const reading = { projectIdOf: (id: string) => id, itemsMax: 1_000 };
  const steps = readQuery(method, request, reading);
  for (let count = 1; ; count++) if (steps.next().done === true) return count;
}

/** Each may have thousands of members, which are put in order. */
test('contextual tuples with parameters, and items with contexts, have a step each', () => {
  const some = Array.from({ length: 20 }, (_, i) => ({ ...question, object_id: `d${i}` }));
  const check = (of: object): number => {
    const contextual_tuples = some.map((tuple) => ({ ...tuple, ...of }));
    return stepsOf('queryCheck', { scope: { contextual_tuples }, question });
  };
  const batch = (of: object): number =>
    stepsOf('queryBatchCheck', { items: some.map((one) => ({ question: one, ...of })) });
  expect([check({}), batch({})]).toEqual([1, 1]);
  const parameters = { condition_name: 'c', condition_params: { a: 1 } };
  expect([check(parameters), batch({ context: { a: 1 } })]).toEqual([21, 21]);
});
