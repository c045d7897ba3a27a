import { PeerKinds } from './peer-kinds.ts';
import type {
  PeerCondition,
  PeerModel,
  PeerRelation,
  PeerRemark,
  PeerRule,
  PeerSubjectType,
  PeerType,
} from './peer-model.ts';

const PARAMETER = /^[a-z_][A-Za-z0-9_]*$/;
const TYPE = /^(?:bool|int|double|string|timestamp|duration|ipaddress|any)$|^(?:list|map)<(.*)>$/;
const TYPE_NESTING_MAX = 8;

/** Findings that keep a peer's model from having the same meaning here. */
export type PeerCheckup = {
  readonly problems: readonly PeerRemark[];
  /** Relations by type that walks look for and the type does not have; no subject holds them. */
  readonly missing: ReadonlyMap<string, ReadonlySet<string>>;
};

/**
 * Checks a peer's model for dangling references and for parts that are decided differently here.
 * The latter are walks through users, walks over relations that are not stored, and exclusions that
 * the wildcard of users would widen. `userType` is the type whose objects are users. Cost: that of
 * `PeerKinds`.
 */
export function checkPeerModel(model: PeerModel, userType: string | undefined): PeerCheckup {
  const checkup = new Checkup(model, userType);
  checkup.run();
  return checkup;
}

class Checkup {
  readonly problems: PeerRemark[] = [];
  readonly missing = new Map<string, Set<string>>();
  readonly #model: PeerModel;
  readonly #userType: string | undefined;
  readonly #types: ReadonlyMap<string, PeerType>;
  readonly #relations: ReadonlyMap<string, ReadonlyMap<string, PeerRelation>>;
  readonly #kinds: PeerKinds;

  constructor(model: PeerModel, userType: string | undefined) {
    this.#model = model;
    this.#userType = userType;
    this.#types = new Map(model.types.map((type) => [type.name, type]));
    this.#relations = new Map(
      model.types.map(({ name, relations }) => [
        name,
        new Map(relations.map((relation) => [relation.name, relation])),
      ]),
    );
    this.#kinds = new PeerKinds(model);
  }

  run(): void {
    const { types, conditions } = this.#model;
    for (const condition of conditions) this.#checkCondition(condition);
    this.#checkUnique(types, 'type');
    this.#checkUnique(conditions, 'condition');
    if (types.length === 0) this.#problem('the model', 'it declares no type');
    if (this.#userType !== undefined && !this.#types.has(this.#userType)) {
      this.#problem('the model', `it has no type ${this.#userType} whose objects could be users`);
    }
    for (const type of types) {
      this.#checkUnique(type.relations, 'relation');
      for (const relation of type.relations) {
        for (const subject of relation.subjects) this.#checkSubject(subject, relation.place);
        this.#checkRule(type, relation, relation.rule);
      }
    }
  }

  #problem(place: string, text: string): void {
    this.problems.push({ place, text });
  }

  #checkUnique(
    list: readonly { readonly name: string; readonly place: string }[],
    kind: string,
  ): void {
    const seen = new Set<string>();
    for (const { name, place } of list) {
      if (seen.has(name)) this.#problem(place, `the ${kind} ${name} is declared twice`);
      seen.add(name);
    }
  }

  #checkCondition({ place, parameters }: PeerCondition): void {
    for (const [name, type] of parameters) {
      if (!PARAMETER.test(name)) {
        const rule = 'the name of a parameter begins with a small letter or _ here';
        this.#problem(place, `parameter ${name}: ${rule}`);
      }
      if (!isKnownType(type)) {
        this.#problem(place, `parameter ${name}: there is no type ${type} here`);
      }
    }
  }

  #checkSubject({ type, relation, condition }: PeerSubjectType, place: string): void {
    if (!this.#types.has(type)) {
      this.#problem(place, `there is no type ${type}`);
      return;
    }
    if (condition !== undefined && !this.#model.conditions.some(({ name }) => name === condition)) {
      this.#problem(place, `there is no condition ${condition}`);
    }
    if (relation === '' || relation === '*' || this.#relationOf(type, relation)) return;
    this.#problem(place, `the type ${type} has no relation ${relation}`);
  }

  #checkRule(type: PeerType, relation: PeerRelation, rule: PeerRule): void {
    switch (rule.op) {
      case 'nil':
        return;
      case 'this':
        if (relation.subjects.length > 0) return;
        this.#problem(relation.place, 'it stores tuples, and says of no type that it admits them');
        return;
      case 'computed':
        if (this.#relationOf(type.name, rule.relation)) return;
        this.#problem(relation.place, `the type ${type.name} has no relation ${rule.relation}`);
        return;
      case 'walk':
        this.#checkWalk(type, relation, rule);
        return;
      case 'union':
      case 'intersection':
        for (const child of rule.children) this.#checkRule(type, relation, child);
        return;
      case 'exclusion':
        this.#checkRule(type, relation, rule.include);
        this.#checkRule(type, relation, rule.exclude);
        this.#checkExclusion(type, relation, rule);
    }
  }

  #checkWalk(
    type: PeerType,
    { place }: PeerRelation,
    { tupleset, computed }: PeerRule & { readonly op: 'walk' },
  ): void {
    const source = this.#relationOf(type.name, tupleset);
    if (source === undefined) {
      this.#problem(place, `the type ${type.name} has no relation ${tupleset}`);
      return;
    }
    if (source.rule.op !== 'this') {
      const rule = 'walks follow stored tuples only';
      this.#problem(place, `${tupleset} is computed, and ${rule}`);
      return;
    }
    for (const subject of source.subjects) {
      if (subject.relation === '*') {
        this.#problem(place, `${tupleset} admits ${subject.type}:*, which leads nowhere here`);
      }
      const isUser = subject.type === this.#userType && subject.relation === '';
      const has = this.#relationOf(subject.type, computed) !== undefined;
      if (isUser && has) {
        this.#problem(
          place,
          `it walks from ${tupleset} to ${computed} of ${subject.type}, whose objects are users here: ` +
            'walks pass users by (another type of users may be named, or none)',
        );
      }
      if (isUser || has || !this.#types.has(subject.type)) continue;
      const missing = this.missing.get(subject.type) ?? new Set();
      this.missing.set(subject.type, missing.add(computed));
    }
    const leads = source.subjects.some(({ type: to, relation }) => {
      return to !== this.#userType || relation !== '';
    });
    if (!leads) {
      this.#problem(place, `${tupleset} admits users only, so that no walk leads anywhere`);
    }
  }

  /**
   * Reports exclusions that the wildcard of users widens. On an exclude side it means every subject
   * here, and only users in the peer. Other wildcards mean the objects of their own type.
   */
  #checkExclusion(
    type: PeerType,
    relation: PeerRelation,
    { include, exclude }: PeerRule & { readonly op: 'exclusion' },
  ): void {
    const excluded = this.#kinds.ofRule(type.name, relation.name, exclude);
    if (this.#userType === undefined || !excluded.has(`${this.#userType}:*`)) return;
    const included = this.#kinds.ofRule(type.name, relation.name, include);
    const others = [...included].filter((kind) => !kind.endsWith(':*') && kind !== this.#userType);
    if (others.length === 0) return;
    this.#problem(
      relation.place,
      `it excludes everybody by a wildcard, which here excludes ${others.join(', ')}, too`,
    );
  }

  #relationOf(type: string, relation: string): PeerRelation | undefined {
    return this.#relations.get(type)?.get(relation);
  }
}

function isKnownType(text: string, nesting = 1): boolean {
  const found = TYPE.exec(text);
  if (found === null || nesting > TYPE_NESTING_MAX) return false;
  const [, inner] = found;
  return inner === undefined || isKnownType(inner, nesting + 1);
}
