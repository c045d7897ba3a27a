import { BUILT_IN_CONDITIONS } from '../conditions/conditions.ts';
import { suggestion } from '../model-json.ts';
import { SEAT_NAMESPACE } from '../names.ts';
import type { NamespaceModel, Rewrite, SubjectType } from './model-shape.ts';
import { subjectText } from './model-subjects.ts';

/** Relation of the tuples that AssignSeat writes. */
export const SEAT_RELATION = 'holder';
/** Relations on which WorkspaceService and GroupService write tuples, with the subjects of these tuples. */
const WRITTEN_BY_SERVICES: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> = new Map([
  ['workspace', new Map(['owner', 'admin', 'member', 'guest'].map((role) => [role, ['user']]))],
  ['group', new Map([['member', ['user', 'group#member']]])],
]);

/** Receives a problem. `hint` is called only if the problem is reported, since it costs more than the rest. */
type ReferenceReport = (path: string, message: string, hint?: () => string) => void;
type ReferencedRelations = ReadonlyMap<string, Rewrite>;

/**
 * Reports each name in a model that refers to nothing, and each violated rule of typed models, namespace by namespace.
 * Open namespaces are not checked. Cost: O(model), and a search for near names for each problem.
 */
export function findReferenceProblems(model: NamespaceModel, report: ReferenceReport): void {
  for (const [name, relations] of model.namespaces) {
    if (!model.open.has(name)) new NamespaceCheck(model, name, relations, report).run();
  }
  if (isTyped(model)) checkServices(model, report);
}

/** Whether any relation declares its subjects. */
export function isTyped(model: NamespaceModel): boolean {
  return model.subjects.size > 0;
}

/** JSON path of a relation. */
export function relationPath(namespace: string, relation: string): string {
  return `$.namespaces.${namespace}.relations.${relation}`;
}

/** Whether stored tuples of a relation with this rewrite count for the relation itself. */
export function hasThis(rewrite: Rewrite): boolean {
  switch (rewrite.op) {
    case 'this':
      return true;
    case 'computed':
    case 'tupleToUserset':
      return false;
    case 'union':
    case 'intersection':
      return rewrite.children.some(hasThis);
    case 'exclusion':
      return hasThis(rewrite.include) || hasThis(rewrite.exclude);
  }
}

/** Calls `visit` for a rewrite and all rewrites in it, outermost first, with their JSON paths. */
export function walkRewrite(
  rewrite: Rewrite,
  path: string,
  visit: (rewrite: Rewrite, path: string) => void,
): void {
  visit(rewrite, path);
  if (rewrite.op === 'exclusion') {
    walkRewrite(rewrite.include, `${path}.exclusion.include`, visit);
    walkRewrite(rewrite.exclude, `${path}.exclusion.exclude`, visit);
  } else if (rewrite.op === 'union' || rewrite.op === 'intersection') {
    rewrite.children.forEach((child, index) =>
      walkRewrite(child, `${path}.${rewrite.op}[${index}]`, visit),
    );
  }
}

/** Check of one namespace that is not open. */
class NamespaceCheck {
  readonly #model: NamespaceModel;
  readonly #name: string;
  readonly #relations: ReferencedRelations;
  readonly #report: ReferenceReport;
  readonly #tuplesets = new Set<string>();

  constructor(
    model: NamespaceModel,
    name: string,
    relations: ReferencedRelations,
    report: ReferenceReport,
  ) {
    this.#model = model;
    this.#name = name;
    this.#relations = relations;
    this.#report = report;
  }

  run(): void {
    for (const [relation, rewrite] of this.#relations) {
      walkRewrite(rewrite, relationPath(this.#name, relation), (inner, path) => {
        if (inner.op === 'computed') this.#checkOwn(inner.relation, `${path}.computed`, relation);
        if (inner.op === 'tupleToUserset') this.#checkWalk(inner, `${path}.tuple_to_userset`);
      });
    }
    if (!isTyped(this.#model)) return;
    for (const [relation, rewrite] of this.#relations) this.#checkSubjects(relation, rewrite);
  }

  /**
   * Reports an undeclared relation of this namespace. `of` is the relation whose rule names it, where it may have been
   * meant as a subject.
   */
  #checkOwn(relation: string, path: string, of?: string): boolean {
    if (this.#relations.has(relation)) return true;
    const message = `the namespace "${this.#name}" declares no relation "${relation}"`;
    this.#report(path, message, () => {
      const nearest = suggestion(relation, this.#relations.keys());
      return nearest === '' && of !== undefined ? this.#subjectHint(relation, of) : nearest;
    });
    return false;
  }

  /**
   * Hint for a type of subjects in the place of a relation. In other languages, that place declares who may be stored.
   */
  #subjectHint(name: string, of: string): string {
    if (name !== 'user' && !this.#model.namespaces.has(name)) return '';
    return `; "${name}" is a type of subjects: who may be written stands in brackets, "relation ${of}: [${name}]" in .gate, "subjects": ["${name}"] in JSON`;
  }

  #checkWalk(walk: Rewrite & { readonly op: 'tupleToUserset' }, path: string): void {
    this.#tuplesets.add(walk.tupleset);
    if (!this.#checkOwn(walk.tupleset, `${path}.tupleset`)) return;
    const { computed } = walk;
    if (!isTyped(this.#model)) {
      if (this.#isAnywhere(computed)) return;
      const message = `no namespace declares a relation "${computed}"`;
      this.#report(`${path}.computed`, message, () => suggestion(computed, this.#allRelations()));
      return;
    }
    const types = this.#model.subjects.get(this.#name)?.get(walk.tupleset);
    // Its own declaration already reports that it has no subjects.
    if (types === undefined) return;
    // Users and wildcards are not objects, so a walk cannot continue from them.
    const objects = types.filter(({ kind }) => kind === 'object' || kind === 'userset');
    const namespaces = new Set(objects.map(({ namespace }) => namespace));
    if (namespaces.size === 0) {
      this.#report(`${path}.tupleset`, `"${walk.tupleset}" admits no objects, so this finds none`);
    }
    for (const namespace of namespaces) {
      if (declares(this.#model, namespace, computed)) continue;
      this.#report(
        `${path}.computed`,
        `the namespace "${namespace}", which "${walk.tupleset}" admits, declares no relation "${computed}"`,
        () => suggestion(computed, relationsOf(this.#model, namespace)),
      );
    }
  }

  #checkSubjects(relation: string, rewrite: Rewrite): void {
    const path = relationPath(this.#name, relation);
    const types = this.#model.subjects.get(this.#name)?.get(relation);
    const isStored = hasThis(rewrite) || this.#tuplesets.has(relation);
    if (types === undefined) {
      if (isStored) this.#report(path, 'must say its subjects, since tuples of it count');
      return;
    }
    if (!isStored) {
      this.#report(
        `${path}.subjects`,
        'says who may be written, but no tuple of it counts: add {"this": {}} to the rewrite',
      );
    }
    types.forEach((type, index) => this.#checkType(type, `${path}.subjects[${index}]`));
  }

  #checkType(type: SubjectType, path: string): void {
    const { conditions } = this.#model;
    const isDeclared = conditions.has(type.condition) || BUILT_IN_CONDITIONS.has(type.condition);
    if (type.condition !== '' && !isDeclared) {
      this.#report(`${path}.condition`, `there is no condition "${type.condition}"`, () =>
        suggestion(type.condition, [...conditions.keys(), ...BUILT_IN_CONDITIONS]),
      );
    }
    if (type.namespace === '' || this.#model.open.has(type.namespace)) return;
    const isKnown = type.namespace === SEAT_NAMESPACE || this.#model.namespaces.has(type.namespace);
    if (!isKnown) {
      this.#report(path, `the model declares no namespace "${type.namespace}"`, () =>
        suggestion(type.namespace, ['user', SEAT_NAMESPACE, ...this.#model.namespaces.keys()]),
      );
    } else if (type.kind === 'userset' && !declares(this.#model, type.namespace, type.relation)) {
      this.#report(
        path,
        `the namespace "${type.namespace}" declares no relation "${type.relation}"`,
        () => suggestion(type.relation, relationsOf(this.#model, type.namespace)),
      );
    }
  }

  #isAnywhere(relation: string): boolean {
    if (relation === SEAT_RELATION) return true;
    for (const relations of this.#model.namespaces.values()) {
      if (relations.has(relation)) return true;
    }
    return false;
  }

  #allRelations(): Set<string> {
    const all = new Set<string>();
    for (const relations of this.#model.namespaces.values()) {
      for (const relation of relations.keys()) all.add(relation);
    }
    return all;
  }
}

/** Whether a namespace has a relation, as far as the model determines it: an open one may have any. */
function declares(model: NamespaceModel, namespace: string, relation: string): boolean {
  if (namespace === SEAT_NAMESPACE) return relation === SEAT_RELATION;
  return model.open.has(namespace) || model.namespaces.get(namespace)?.has(relation) !== false;
}

function relationsOf(model: NamespaceModel, namespace: string): Iterable<string> {
  if (namespace === SEAT_NAMESPACE) return [SEAT_RELATION];
  return model.namespaces.get(namespace)?.keys() ?? [];
}

/** Reports relations that do not admit the tuples that the services for workspaces and groups write. */
function checkServices(model: NamespaceModel, report: ReferenceReport): void {
  for (const [namespace, relations] of WRITTEN_BY_SERVICES) {
    for (const [relation, needed] of relations) {
      const types = model.subjects.get(namespace)?.get(relation);
      if (types === undefined && model.open.has(namespace)) continue;
      const isFree = ({ condition, expires }: SubjectType): boolean =>
        condition === '' && expires !== true;
      const admitted = (types ?? []).filter(isFree).map(subjectText);
      const missing = needed.filter((text) => !admitted.includes(text));
      if (missing.length === 0) continue;
      const isDeclared = model.namespaces.get(namespace)?.has(relation) === true;
      const path = relationPath(namespace, relation);
      report(
        isDeclared ? path : `$.namespaces.${namespace}.relations`,
        `"${relation}" must admit ${missing.map((text) => `"${text}"`).join(' and ')} without a condition: ` +
          `the service itself writes such tuples of ${namespace}s`,
      );
    }
  }
}

/**
 * Returns the model for decisions over stored tuples that may not fit it: those tuples are ignored. A model that is not
 * typed admits all tuples.
 */
export function admittedOnly(model: NamespaceModel): NamespaceModel {
  return isTyped(model) ? { ...model, admittedOnly: true } : model;
}
