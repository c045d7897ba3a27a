import type { PeerModel, PeerRule } from './peer-model.ts';

/** Types whose objects a relation can hold directly; `type:*` for the wildcard of a type. */
type TypeNames = ReadonlySet<string>;

const NONE: TypeNames = new Set();

/**
 * Subjects that can hold each relation by the types of a peer's model: the least solution. Usersets
 * count as the subjects that they hold.
 * Cost: O(relations × rules) a round, at most as many rounds as there are relations.
 */
export class PeerKinds {
  readonly #model: PeerModel;
  readonly #kinds = new Map<string, Set<string>>();
  readonly #subjects = new Map<
    string,
    PeerModel['types'][number]['relations'][number]['subjects']
  >();

  constructor(model: PeerModel) {
    this.#model = model;
    for (const type of model.types) {
      for (const { name, subjects } of type.relations) {
        this.#kinds.set(keyOf(type.name, name), new Set());
        this.#subjects.set(keyOf(type.name, name), subjects);
      }
    }
    while (this.#grow());
  }

  /** Subjects that a rule of a type's relation can hold. */
  ofRule(type: string, relation: string, rule: PeerRule): TypeNames {
    switch (rule.op) {
      case 'nil':
        return NONE;
      case 'this':
        return this.#ofStored(type, relation);
      case 'computed':
        return this.#kinds.get(keyOf(type, rule.relation)) ?? NONE;
      case 'walk': {
        const types = this.#subjects.get(keyOf(type, rule.tupleset)) ?? [];
        return union(types.map((one) => this.#kinds.get(keyOf(one.type, rule.computed)) ?? NONE));
      }
      case 'union':
      // Intersections are not computed exactly: including too many subjects is safe here.
      case 'intersection':
        return union(rule.children.map((child) => this.ofRule(type, relation, child)));
      case 'exclusion':
        return this.ofRule(type, relation, rule.include);
    }
  }

  #ofStored(type: string, relation: string): TypeNames {
    const types = this.#subjects.get(keyOf(type, relation)) ?? [];
    return union(
      types.map((one) => {
        if (one.relation === '') return new Set([one.type]);
        if (one.relation === '*') return new Set([one.type, `${one.type}:*`]);
        return this.#kinds.get(keyOf(one.type, one.relation)) ?? NONE;
      }),
    );
  }

  #grow(): boolean {
    let hasGrown = false;
    for (const type of this.#model.types) {
      for (const { name, rule } of type.relations) {
        const kinds = this.#kinds.get(keyOf(type.name, name)) as Set<string>;
        const before = kinds.size;
        for (const kind of this.ofRule(type.name, name, rule)) kinds.add(kind);
        hasGrown ||= kinds.size > before;
      }
    }
    return hasGrown;
  }
}

function union(sets: readonly TypeNames[]): TypeNames {
  return new Set(sets.flatMap((set) => [...set]));
}

function keyOf(type: string, relation: string): string {
  return `${type}#${relation}`;
}
