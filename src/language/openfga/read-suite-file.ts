import { assertExact } from '../peers/exact-numbers.ts';
import { membersOf, optionalList, shapeError, stringOf } from '../peers/json-shape.ts';
import type { PeerRemark, PeerSuite, PeerTest, PeerTuple } from '../peers/peer-model.ts';
import { readYaml } from '../peers/read-yaml.ts';
import { referenceOf, tupleOf } from './read-store-file.ts';

/** One stage of a test of OpenFGA's own suite: a model over the tuples of all stages so far. */
export type SuiteStage = {
  readonly name: string;
  readonly model: string;
  readonly suite: PeerSuite;
};

/**
 * Reads a file of OpenFGA's own suite (`assets/tests/*.yaml` of its repository): tests in stages,
 * each with a model, tuples, and assertions with contextual tuples. Assertions that expect an error
 * or list users are reported in `unsupported`.
 * Errors: FIELD_INVALID naming the place. O(size).
 */
export function readSuiteFile(text: string): readonly SuiteStage[] {
  const root = membersOf(readYaml(text, 'the suite'), 'the suite');
  return optionalList(root['tests'], 'tests').flatMap((one, at) => {
    const test = membersOf(one, `tests[${at}]`);
    const name = stringOf(test['name'], `tests[${at}].name`);
    const written: PeerTuple[] = [];
    return optionalList(test['stages'], name).map((value, index): SuiteStage => {
      const place = `${name}, stage ${index + 1}`;
      const stage = membersOf(value, place);
      written.push(...tuplesOf(stage['tuples'], place));
      const unsupported: PeerRemark[] = [];
      const tests = [
        ...assertionsOf(stage['checkAssertions'], place, unsupported, checkTest),
        ...assertionsOf(stage['listObjectsAssertions'], place, unsupported, listTest),
      ];
      for (const _ of optionalList(stage['listUsersAssertions'], place)) {
        unsupported.push({ place, text: 'users are not listed in tests' });
      }
      const model = stringOf(stage['model'], `${place}, model`);
      return { name: place, model, suite: { tuples: [...written], tests, unsupported } };
    });
  });
}

type Members = ReturnType<typeof membersOf>;

function assertionsOf(
  list: unknown,
  place: string,
  unsupported: PeerRemark[],
  read: (assertion: Members, place: string) => Omit<PeerTest, 'name' | 'tuples'>,
): readonly PeerTest[] {
  return optionalList(list, place).flatMap((one): readonly PeerTest[] => {
    const assertion = membersOf(one, place);
    if (assertion['errorCode'] !== undefined) {
      unsupported.push({ place, text: 'it expects an error, where the service denies' });
      return [];
    }
    const tuples = tuplesOf(assertion['contextualTuples'], place);
    return [{ name: place, tuples, ...read(assertion, place) }];
  });
}

function tuplesOf(list: unknown, place: string): readonly PeerTuple[] {
  return optionalList(list, place).map((one) => tupleOf(one, place));
}

function checkTest(assertion: Members, place: string): Omit<PeerTest, 'name' | 'tuples'> {
  const tuple = tupleOf(assertion['tuple'], place);
  const isAllowed = assertion['expectation'];
  if (typeof isAllowed !== 'boolean') throw shapeError(place, 'expects neither true nor false');
  const { object, relation, subject } = tuple;
  const context = assertion['context'];
  assertExact(context, `${place}.context`);
  return { checks: [{ object, relation, subject, context, isAllowed, place }], lists: [] };
}

function listTest(assertion: Members, place: string): Omit<PeerTest, 'name' | 'tuples'> {
  const request = membersOf(assertion['request'], place);
  const ids = optionalList(assertion['expectation'], place).map((object) => {
    return referenceOf(stringOf(object, place), place).id;
  });
  const list = {
    type: stringOf(request['type'], place),
    relation: stringOf(request['relation'], place),
    subject: referenceOf(stringOf(request['user'], place), place),
    context: assertion['context'],
    ids,
    place,
  };
  return { checks: [], lists: [list] };
}
