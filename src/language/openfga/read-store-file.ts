import { assertExact } from '../peers/exact-numbers.ts';
import {
  type JsonMembers,
  membersOf,
  optionalList,
  optionalMembers,
  optionalString,
  shapeError,
  stringOf,
} from '../peers/json-shape.ts';
import type {
  PeerCheck,
  PeerList,
  PeerReference,
  PeerRemark,
  PeerSuite,
  PeerTest,
  PeerTuple,
} from '../peers/peer-model.ts';
import { readYaml } from '../peers/read-yaml.ts';

/** The model of a store file (`.fga.yaml`): its text, or the path of its file. */
export type StoreModel =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly path: string };

export type StoreFile = { readonly model: StoreModel; readonly suite: PeerSuite };

/** Reads a file that another one names. Errors: those of the caller's file system. */
export type ReadOther = (path: string) => string;

/**
 * Reads a store file of OpenFGA: the place of its model, its tuples (`tuples`, `tuple_file`,
 * `tuple_files`), and tests with `check` and `list_objects`. `list_users` has no counterpart here
 * and is reported in `unsupported`.
 * Errors: FIELD_INVALID naming the place; those of `readOther`. O(size).
 */
export function readStoreFile(text: string, readOther: ReadOther): StoreFile {
  return new StoreReader(readOther).file(
    membersOf(readYaml(text, 'the store file'), 'the store file'),
  );
}

/**
 * An object or subject as OpenFGA writes it: `user:anne`, `group:eng#member`, `user:*`.
 * Errors: FIELD_INVALID naming `place`.
 */
export function referenceOf(text: string, place: string): PeerReference {
  const colon = text.indexOf(':');
  const hash = text.lastIndexOf('#');
  const hasRelation = hash > colon;
  const id = text.slice(colon + 1, hasRelation ? hash : undefined);
  const isTyped = colon > 0 && !text.slice(0, colon).includes('#');
  if (!isTyped || id === '') throw shapeError(place, `${JSON.stringify(text)} is no type:id`);
  return { type: text.slice(0, colon), id, relation: hasRelation ? text.slice(hash + 1) : '' };
}

class StoreReader {
  readonly #readOther: ReadOther;
  readonly #unsupported: PeerRemark[] = [];

  constructor(readOther: ReadOther) {
    this.#readOther = readOther;
  }

  file(root: JsonMembers): StoreFile {
    const path = optionalString(root['model_file'], 'model_file');
    const text = optionalString(root['model'], 'model');
    if (path === undefined && text === undefined) {
      throw shapeError('the store file', 'has neither model nor model_file');
    }
    const model: StoreModel =
      text === undefined ? { kind: 'file', path: path ?? '' } : { kind: 'text', text };
    const tuples = this.#tuples(root, 'tuples');
    const tests = optionalList(root['tests'], 'tests').map((one, at) =>
      this.#test(membersOf(one, `tests[${at}]`), `tests[${at}]`),
    );
    return { model, suite: { tuples, tests, unsupported: this.#unsupported } };
  }

  #tuples(owner: JsonMembers, place: string): readonly PeerTuple[] {
    const paths = [
      ...optionalList(owner['tuple_files'], place),
      ...(owner['tuple_file'] === undefined ? [] : [owner['tuple_file']]),
    ];
    const listed = optionalList(owner['tuples'], place).map((one, at) =>
      tupleOf(one, `${place}[${at}]`),
    );
    const others = paths.flatMap((one) => {
      const path = stringOf(one, `${place}, a file of tuples`);
      if (!/\.(?:ya?ml|json)$/.test(path)) {
        throw shapeError(place, `${path}: tuples are read from YAML and JSON only`);
      }
      const list = optionalList(readYaml(this.#readOther(path), path), path);
      return list.map((tuple, at) => tupleOf(tuple, `${path}[${at}]`));
    });
    return [...listed, ...others];
  }

  #test(test: JsonMembers, place: string): PeerTest {
    const name = optionalString(test['name'], place) ?? place;
    const own = `${place} (${name})`;
    const tuples = this.#tuples(test, own);
    const checks = optionalList(test['check'], own).flatMap((one, at) =>
      checksOf(membersOf(one, `${own}, check[${at}]`), `${own}, check[${at}]`),
    );
    const lists = optionalList(test['list_objects'], own).flatMap((one, at) =>
      listsOf(membersOf(one, `${own}, list_objects[${at}]`), `${own}, list_objects[${at}]`),
    );
    optionalList(test['list_users'], own).forEach((one, at) => {
      const where = `${own}, list_users[${at}]`;
      const asked = optionalMembers(membersOf(one, where)['assertions'], where);
      for (const relation of Object.keys(asked)) {
        const text = 'users are not listed in tests';
        this.#unsupported.push({ place: `${where}, ${relation}`, text });
      }
    });
    return { name, tuples, checks, lists };
  }
}

/** A tuple in the form of OpenFGA's files. Errors: FIELD_INVALID naming `place`. */
export function tupleOf(value: unknown, place: string): PeerTuple {
  const tuple = membersOf(value, place);
  const condition = optionalMembers(tuple['condition'], place);
  assertExact(condition['context'], `${place}.condition.context`);
  return {
    object: referenceOf(stringOf(tuple['object'], `${place}.object`), place),
    relation: stringOf(tuple['relation'], `${place}.relation`),
    subject: referenceOf(stringOf(tuple['user'], `${place}.user`), place),
    condition: optionalString(condition['name'], `${place}.condition.name`),
    context: condition['context'],
    expiresAt: undefined,
    place,
  };
}

function checksOf(check: JsonMembers, place: string): readonly PeerCheck[] {
  const users = manyOf(check, 'user', 'users', place);
  const objects = manyOf(check, 'object', 'objects', place);
  assertExact(check['context'], `${place}.context`);
  const assertions = Object.entries(membersOf(check['assertions'], `${place}.assertions`));
  return users.flatMap((subject) =>
    objects.flatMap((object) =>
      assertions.map(([relation, isAllowed]): PeerCheck => {
        if (typeof isAllowed !== 'boolean') {
          throw shapeError(`${place}.assertions.${relation}`, 'must be true or false');
        }
        return { object, relation, subject, context: check['context'], isAllowed, place };
      }),
    ),
  );
}

function manyOf(
  owner: JsonMembers,
  one: string,
  many: string,
  place: string,
): readonly PeerReference[] {
  const list = owner[many] === undefined ? [owner[one]] : optionalList(owner[many], place);
  return list.map((text) => referenceOf(stringOf(text, `${place}.${one}`), place));
}

function listsOf(list: JsonMembers, place: string): readonly PeerList[] {
  const subject = referenceOf(stringOf(list['user'], `${place}.user`), place);
  const type = stringOf(list['type'], `${place}.type`);
  assertExact(list['context'], `${place}.context`);
  const assertions = Object.entries(membersOf(list['assertions'], `${place}.assertions`));
  return assertions.map(([relation, objects]) => {
    const ids = optionalList(objects, place).map((text) => {
      return referenceOf(stringOf(text, `${place}.assertions.${relation}`), place).id;
    });
    return { type, relation, subject, context: list['context'], ids, place };
  });
}
