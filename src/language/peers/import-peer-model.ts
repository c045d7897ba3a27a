import { inspectModel } from '../../model/namespace/namespace-model.ts';
import type {
  ConditionDocument,
  ModelDocument,
  NamespaceDocument,
  RelationDocument,
  RewriteDocument,
  SubjectDocument,
} from '../model-document.ts';
import { checkPeerModel } from './check-peer-model.ts';
import { expressionsOf } from './peer-expressions.ts';
import type {
  PeerCondition,
  PeerModel,
  PeerRelation,
  PeerRemark,
  PeerRule,
  PeerSubjectType,
  PeerType,
} from './peer-model.ts';
import { namesOfPeer, type PeerNames } from './peer-names.ts';

/** A peer's model in the form that it has here, or the reasons why it has none. */
export type ImportedModel = {
  /** Undefined if there are problems. */
  readonly document: ModelDocument | undefined;
  /** Parts that cannot be expressed, with the place and the reason. */
  readonly problems: readonly PeerRemark[];
  /**
   * Parts with another name or form here, and additions that the service's own rules require. No
   * answer differs.
   */
  readonly notes: readonly PeerRemark[];
  readonly names: PeerNames;
  /** The peer's type whose objects are users here. */
  readonly userType: string | undefined;
  readonly peer: PeerModel;
};

export type ImportOptions = {
  /** The peer's type whose objects are users; 'none' for no type; undefined: detected. */
  readonly userType: string | undefined;
};

/** The subjects that the service itself makes members of a group. */
const GROUP_MEMBER: PeerSubjectType = {
  type: 'group',
  relation: 'member',
  condition: undefined,
  expires: false,
};
const WORKSPACE_ROLES = ['owner', 'admin', 'member', 'guest'];

/**
 * Converts a peer's model into ours. A model is accepted only if every query has the same answer
 * here. Anything else is a problem; a mere difference of form is a note. The document of an
 * accepted model passes `checkModelDocument`. Throws nothing.
 * Cost: that of `checkModelDocument`, and of comparing types, O(relations²) at worst.
 */
export function importPeerModel(peer: PeerModel, options: ImportOptions): ImportedModel {
  const userType = userTypeOf(peer, options.userType);
  const names = namesOfPeer(peer, userType, takenBy(peer, userType));
  const { problems: unlike, missing } = checkPeerModel(peer, userType);
  const expressions = expressionsOf(peer);
  const problems = [...peer.problems, ...names.problems, ...unlike, ...expressions.problems];
  const notes = [...peer.notes, ...names.notes, ...expressions.notes];
  if (userType !== undefined) {
    notes.push({ place: 'the model', text: `objects of the type ${userType} are users` });
  }
  if (peer.conditions.length > 0) {
    const text = 'a question brings a context, an empty one at least: without any, conditions deny';
    notes.push({ place: 'the model', text });
  }
  const base = { names, userType, peer };
  if (problems.length > 0) return { ...base, document: undefined, problems, notes };
  const writer = new DocumentWriter(peer, names, userType, missing, expressions.texts, notes);
  const document = writer.document();
  const { errors } = inspectModel(JSON.stringify(document));
  const refused = errors.map(({ path, message }) => {
    return { place: writer.placeOf(path), text: `the model checker says of ${path}: ${message}` };
  });
  if (refused.length > 0) return { ...base, document: undefined, problems: refused, notes };
  return { ...base, document, problems: [], notes };
}

/** Namespaces that the service writes tuples of, if the peer's types of these names do not fit. */
function takenBy(peer: PeerModel, userType: string | undefined): ReadonlySet<string> {
  const taken = new Set<string>();
  const admitsUsers = (type: PeerType | undefined, relation: string): boolean =>
    type?.relations
      .find(({ name }) => name === relation)
      ?.subjects.some((one) => isPlain(one) && one.type === userType && one.relation === '') ===
    true;
  const group = peer.types.find(({ name }) => name === 'group');
  if (!admitsUsers(group, 'member')) taken.add('group');
  const workspace = peer.types.find(({ name }) => name === 'workspace');
  if (!WORKSPACE_ROLES.every((role) => admitsUsers(workspace, role))) taken.add('workspace');
  return taken;
}

function isPlain({ condition, expires }: PeerSubjectType): boolean {
  return condition === undefined && !expires;
}

class DocumentWriter {
  readonly #peer: PeerModel;
  readonly #names: PeerNames;
  readonly #userType: string | undefined;
  /** Relations by type that walks look for, and that the type does not have. */
  readonly #missing: ReadonlyMap<string, ReadonlySet<string>>;
  /** Expressions with the same meaning here, by the peer's name of the condition. */
  readonly #expressions: ReadonlyMap<string, string>;
  readonly #notes: PeerRemark[];
  readonly #places = new Map<string, string>();

  constructor(
    peer: PeerModel,
    names: PeerNames,
    userType: string | undefined,
    missing: ReadonlyMap<string, ReadonlySet<string>>,
    expressions: ReadonlyMap<string, string>,
    notes: PeerRemark[],
  ) {
    this.#peer = peer;
    this.#names = names;
    this.#userType = userType;
    this.#missing = missing;
    this.#expressions = expressions;
    this.#notes = notes;
  }

  document(): ModelDocument {
    const conditions = this.#peer.conditions.map((one) => this.#condition(one));
    const namespaces = this.#peer.types
      .filter((type) => type.name !== this.#userType || type.relations.length > 0)
      .map((type) => this.#namespace(type));
    return {
      schema_version: 1,
      ...(conditions.length === 0 ? {} : { conditions: Object.fromEntries(conditions) }),
      namespaces: Object.fromEntries(namespaces),
    };
  }

  /** Place in the peer's model of the part at a path of the document. */
  placeOf(path: string): string {
    const [, , first = '', , second = ''] = path.split(/[.[]/);
    return this.#places.get(`${first}#${second}`) ?? this.#places.get(first) ?? 'the model';
  }

  #condition(condition: PeerCondition): [string, ConditionDocument] {
    const { name, place, parameters } = condition;
    const expression = this.#expressions.get(name) ?? condition.expression;
    const own = this.#conditionName(name);
    this.#places.set(own, place);
    return [own, { parameters: Object.fromEntries(parameters), expression }];
  }

  #namespace(type: PeerType): [string, NamespaceDocument] {
    const name = this.#namespaceName(type.name);
    this.#places.set(name, type.place);
    const relations = type.relations.map((relation): [string, RelationDocument] => {
      const own = this.#relationName(relation.name);
      this.#places.set(`${name}#${own}`, relation.place);
      return [own, this.#relation(name, relation)];
    });
    for (const missing of this.#missing.get(type.name) ?? []) {
      const text = `it has no ${missing}, which others walk to: one that nobody holds stands for it`;
      this.#notes.push({ place: type.place, text });
      relations.push([this.#relationName(missing), never()]);
    }
    return [name, { relations: Object.fromEntries(relations) }];
  }

  #relation(namespace: string, { name, place, rule, subjects }: PeerRelation): RelationDocument {
    const simple = withoutNil(rule);
    if (simple.op === 'nil') {
      this.#notes.push({ place, text: 'nobody holds it, whatever is written' });
      return never();
    }
    const rewrite = simple.op === 'this' && subjects.length > 0 ? {} : this.#rewrite(simple);
    if (subjects.length === 0) return rewrite;
    const admitted = [...subjects];
    if (namespace === 'group' && name === 'member' && !admitted.some(isNestedGroup)) {
      admitted.push(GROUP_MEMBER);
      const text = 'group#member is admitted, too: the service itself nests its groups';
      this.#notes.push({ place, text });
    }
    const documents = admitted.map((one) => this.#subject(one));
    const texts = documents.map((one) => JSON.stringify(one));
    const once = documents.filter((_, index) => texts.indexOf(texts[index] ?? '') === index);
    return { ...rewrite, subjects: once };
  }

  #rewrite(rule: PeerRule): RewriteDocument {
    switch (rule.op) {
      case 'nil':
      case 'this':
        return { this: {} };
      case 'computed':
        return { computed: this.#relationName(rule.relation) };
      case 'walk': {
        const tupleset = this.#relationName(rule.tupleset);
        return { tuple_to_userset: { tupleset, computed: this.#relationName(rule.computed) } };
      }
      case 'union':
        return { union: rule.children.map((child) => this.#rewrite(child)) };
      case 'intersection':
        return { intersection: rule.children.map((child) => this.#rewrite(child)) };
      case 'exclusion': {
        const include = this.#rewrite(rule.include);
        return { exclusion: { include, exclude: this.#rewrite(rule.exclude) } };
      }
    }
  }

  #subject({ type, relation, condition, expires }: PeerSubjectType): SubjectDocument {
    const isUser = type === this.#userType;
    const name =
      isUser && (relation === '' || relation === '*') ? 'user' : this.#namespaceName(type);
    const suffix =
      relation === '' ? '' : relation === '*' ? ':*' : `#${this.#relationName(relation)}`;
    if (condition === undefined && !expires) return name + suffix;
    return {
      type: name + suffix,
      ...(condition === undefined ? {} : { condition: this.#conditionName(condition) }),
      ...(expires ? { expires } : {}),
    };
  }

  #namespaceName(name: string): string {
    return this.#names.namespaces.get(name) ?? name;
  }

  #relationName(name: string): string {
    return this.#names.relations.get(name) ?? name;
  }

  #conditionName(name: string): string {
    return this.#names.conditions.get(name) ?? name;
  }
}

function isNestedGroup(one: PeerSubjectType): boolean {
  return isPlain(one) && one.type === 'group' && one.relation === 'member';
}

/** A relation that no subject holds: a stored tuple excludes itself. */
function never(): RelationDocument {
  return { exclusion: { include: { this: {} }, exclude: { this: {} } }, subjects: ['user'] };
}

/**
 * The rule without parts that no subject holds, and without operators of one part; nil if nothing
 * is left.
 */
export function withoutNil(rule: PeerRule): PeerRule {
  if (rule.op === 'exclusion') {
    const include = withoutNil(rule.include);
    const exclude = withoutNil(rule.exclude);
    if (include.op === 'nil' || exclude.op === 'nil') return include;
    return { op: 'exclusion', include, exclude };
  }
  if (rule.op !== 'union' && rule.op !== 'intersection') return rule;
  const children = rule.children.map(withoutNil);
  const somebody = children.filter(({ op }) => op !== 'nil');
  const isNil = rule.op === 'union' ? somebody.length === 0 : somebody.length < children.length;
  const [only] = somebody;
  if (isNil || only === undefined) return { op: 'nil' };
  return somebody.length === 1 ? only : { op: rule.op, children: somebody };
}

/**
 * The peer's type whose objects are users here: `asked`, or no type if that is 'none'. Without
 * `asked` these are tried in order: a type called `user`, one that ends in `/user`, one with a
 * wildcard, one without relations that is a subject. The first that matches exactly one type
 * decides. Undefined: every subject is an object.
 */
export function userTypeOf(model: PeerModel, asked: string | undefined): string | undefined {
  if (asked !== undefined) return asked === 'none' ? undefined : asked;
  const names = model.types.map(({ name }) => name);
  const subjects = model.types.flatMap(({ relations }) =>
    relations.flatMap((relation) => relation.subjects),
  );
  const typesOf = (isMeant: (subject: PeerSubjectType) => boolean): readonly string[] => [
    ...new Set(subjects.filter(isMeant).map(({ type }) => type)),
  ];
  const bare = model.types.filter(({ relations }) => relations.length === 0);
  const isBare = (type: string): boolean => bare.some(({ name }) => name === type);
  const candidates = [
    names.filter((name) => name === 'user'),
    names.filter((name) => name.endsWith('/user')),
    typesOf(({ relation }) => relation === '*'),
    typesOf(({ type, relation }) => relation === '' && isBare(type)),
  ];
  return candidates.find(({ length }) => length === 1)?.[0];
}
