import { canonicalJson } from '../../model/canonical-json.ts';
import { checkObjectId } from '../../model/names.ts';
import { problemOfTuple } from '../../model/namespace/model-admission.ts';
import { type NamespaceModel, parseModel } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, Subject } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { JsonValue } from '../../shared/json.ts';
import { microsecondsOf, parseTimestamp } from '../../shared/time/instant.ts';
import type { ImportedModel } from './import-peer-model.ts';
import type {
  PeerCheck,
  PeerList,
  PeerReference,
  PeerRemark,
  PeerSuite,
  PeerTuple,
} from './peer-model.ts';

/** A check of a peer's test in our terms. */
export type ImportedCheck = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: Subject;
  /** JSON text of an object; '' for none. */
  readonly contextJson: string;
  readonly isAllowed: boolean;
  readonly place: string;
};

export type ImportedList = {
  readonly namespace: string;
  readonly relation: string;
  readonly userId: string;
  /** Sorted by their UTF-8 bytes, without duplicates. */
  readonly ids: readonly string[];
  readonly place: string;
};

export type ImportedTest = {
  readonly name: string;
  readonly tuples: readonly RelationTuple[];
  readonly checks: readonly ImportedCheck[];
  readonly lists: readonly ImportedList[];
};

/** A peer's tuples and tests in our terms. */
export type ImportedSuite = {
  readonly tuples: readonly RelationTuple[];
  readonly tests: readonly ImportedTest[];
  /**
   * Tuples that cannot be written and are left out. Tests that depend on them would be meaningless.
   */
  readonly problems: readonly PeerRemark[];
  /** Assertions that cannot be made here, each with the reason. */
  readonly unsupported: readonly PeerRemark[];
};

/**
 * Converts the tests of an imported model into our terms. A check of a userset allows here if any
 * of its members holds the relation. A denial of it therefore cannot be asserted. Throws nothing.
 * O(size).
 */
export function importSuite(model: ImportedModel, suite: PeerSuite): ImportedSuite {
  const importer = new SuiteImporter(model);
  const tuples = importer.tuples(suite.tuples);
  const tests = suite.tests.map((test) => ({
    name: test.name,
    tuples: importer.tuples(test.tuples),
    checks: test.checks.flatMap((check) => importer.check(check)),
    lists: test.lists.flatMap((list) => importer.list(list, [...suite.tuples, ...test.tuples])),
  }));
  const unsupported = [...suite.unsupported, ...importer.unsupported];
  return { tuples, tests, problems: importer.problems, unsupported };
}

class SuiteImporter {
  readonly problems: PeerRemark[] = [];
  readonly unsupported: PeerRemark[] = [];
  readonly #model: ImportedModel;
  readonly #checker: NamespaceModel;
  /**
   * Context of checks without one. No condition is decided here without a context; in the peer, a
   * tuple's own values suffice.
   */
  readonly #emptyContext: string;

  constructor(model: ImportedModel) {
    this.#model = model;
    this.#emptyContext = model.peer.conditions.length === 0 ? '' : '{}';
    this.#checker = parseModel(model.document === undefined ? '' : JSON.stringify(model.document));
  }

  tuples(tuples: readonly PeerTuple[]): readonly RelationTuple[] {
    return tuples.flatMap((tuple) => {
      return this.#guarded(this.problems, tuple.place, () => {
        const imported = this.#tuple(tuple);
        const problem = problemOfTuple(this.#checker, imported);
        if (problem !== undefined)
          throw unaskable(`the model does not admit it: ${problem.message}`);
        return imported;
      });
    });
  }

  check(check: PeerCheck): readonly ImportedCheck[] {
    return this.#guarded(this.unsupported, check.place, () => {
      const { relation, place, isAllowed } = check;
      const query = this.#query(check.object.type, relation, check.subject);
      const objectId = idOf(check.object);
      if (!isAllowed && check.subject.relation !== '') {
        throw unaskable('a userset is allowed here, too, if one of its members is');
      }
      const contextJson = jsonOf(check.context) || this.#emptyContext;
      return { ...query, objectId, contextJson, isAllowed, place };
    });
  }

  list(list: PeerList, tuples: readonly PeerTuple[]): readonly ImportedList[] {
    return this.#guarded(this.unsupported, list.place, () => {
      const { place } = list;
      const { subject, ...query } = this.#query(list.type, list.relation, list.subject);
      if (subject.kind !== 'user') throw unaskable('objects are listed for users only');
      if (jsonOf(list.context) !== '') throw unaskable('a list is asked without a context');
      if (
        tuples.some(({ condition, context }) => condition !== undefined && jsonOf(context) !== '')
      ) {
        throw unaskable('a list leaves tuples with a condition out');
      }
      const ids = [...new Set(list.ids)].toSorted((a, b) =>
        Buffer.compare(Buffer.from(a), Buffer.from(b)),
      );
      return { ...query, userId: subject.userId, ids, place };
    });
  }

  #tuple({ object, relation, subject, condition, context, expiresAt }: PeerTuple): RelationTuple {
    const names = this.#model.names;
    const key = {
      namespace: this.#namespace(object.type),
      objectId: idOf(object),
      relation: names.relations.get(relation) ?? relation,
      subject: this.#subject(subject),
    };
    const paramsJson = jsonOf(context);
    const instant = expiresAt === undefined ? undefined : parseTimestamp(expiresAt);
    if (expiresAt !== undefined && instant === undefined) {
      throw unaskable(`${expiresAt} is no instant`);
    }
    return {
      ...key,
      ...(condition === undefined
        ? {}
        : { conditionName: names.conditions.get(condition) ?? condition }),
      ...(condition === undefined || paramsJson === '' ? {} : { conditionParams: paramsJson }),
      ...(instant === undefined
        ? {}
        : {
            expiresAtUs: microsecondsOf(instant),
          }),
    };
  }

  #query(
    type: string,
    relation: string,
    subject: PeerReference,
  ): { readonly namespace: string; readonly relation: string; readonly subject: Subject } {
    const declared = this.#model.peer.types.find(({ name }) => name === type);
    if (declared?.relations.some(({ name }) => name === relation) !== true) {
      throw unaskable(`the model has no relation ${relation} of ${type}`);
    }
    const asked = this.#subject(subject);
    if (asked.kind === 'wildcard' || asked.kind === 'wildcardOf') {
      throw unaskable('nobody can ask for the wildcard itself');
    }
    return {
      namespace: this.#namespace(type),
      relation: this.#model.names.relations.get(relation) ?? relation,
      subject: asked,
    };
  }

  #subject(subject: PeerReference): Subject {
    const { type, id, relation } = subject;
    const isUser = type === this.#model.userType && relation === '';
    if (id === '*' && relation === '') {
      return isUser
        ? { kind: 'wildcard' }
        : { kind: 'wildcardOf', namespace: this.#namespace(type) };
    }
    if (isUser) return { kind: 'user', userId: idOf(subject) };
    const own = relation === '' ? '' : (this.#model.names.relations.get(relation) ?? relation);
    return {
      kind: 'set',
      namespace: this.#namespace(type),
      objectId: idOf(subject),
      relation: own,
    };
  }

  #namespace(type: string): string {
    const name = this.#model.names.namespaces.get(type);
    if (name === undefined) throw unaskable(`the model has no type ${type}`);
    return name;
  }

  #guarded<Value>(remarks: PeerRemark[], place: string, read: () => Value): readonly Value[] {
    try {
      return [read()];
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      remarks.push({ place, text: error.message });
      return [];
    }
  }
}

function unaskable(message: string): AppError<AuthzReason> {
  return new AppError<AuthzReason>('FIELD_INVALID', message);
}

function idOf({ id }: PeerReference): string {
  checkObjectId('the id', id);
  return id;
}

/** JSON text of a context; '' for none or an empty one. */
function jsonOf(context: unknown): string {
  if (context === undefined || context === null) return '';
  if (typeof context !== 'object' || Array.isArray(context)) {
    throw unaskable('a context is an object');
  }
  if (Object.keys(context).length === 0) return '';
  try {
    return canonicalJson(context as JsonValue);
  } catch (error) {
    if (error instanceof RangeError) throw unaskable(`a context: ${error.message}`);
    throw error;
  }
}
