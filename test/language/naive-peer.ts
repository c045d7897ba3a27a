import type {
  PeerModel,
  PeerReference,
  PeerRelation,
  PeerRule,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';

/**
 * Answers questions about a peer's model by the peer's rules, written down as they are said and with no regard
 * to cost: a wildcard is everybody of its type, a walk passes by what lacks the relation, a way that leads
 * back to itself adds nobody. Knows no conditions.
 */
export class NaivePeer {
  readonly #model: PeerModel;
  readonly #tuples: readonly PeerTuple[];

  constructor(model: PeerModel, tuples: readonly PeerTuple[]) {
    this.#model = model;
    this.#tuples = tuples;
  }

  holds(object: PeerReference, relation: string, subject: PeerReference): boolean {
    return this.#holds(object, relation, subject, []);
  }

  #holds(
    object: PeerReference,
    name: string,
    subject: PeerReference,
    path: readonly string[],
  ): boolean {
    const key = `${object.type}:${object.id}#${name}`;
    const relation = this.#model.types
      .find((type) => type.name === object.type)
      ?.relations.find((one) => one.name === name);
    if (relation === undefined || path.includes(key)) return false;
    return this.#follows(object, relation, relation.rule, subject, [...path, key]);
  }

  #follows(
    object: PeerReference,
    relation: PeerRelation,
    rule: PeerRule,
    subject: PeerReference,
    path: readonly string[],
  ): boolean {
    const follows = (inner: PeerRule): boolean =>
      this.#follows(object, relation, inner, subject, path);
    switch (rule.op) {
      case 'nil':
        return false;
      case 'this':
        return this.#stored(object, relation.name).some((stored) => {
          if (stored.relation !== '') return this.#holds(stored, stored.relation, subject, path);
          return stored.type === subject.type && ['*', subject.id].includes(stored.id);
        });
      case 'computed':
        return this.#holds(object, rule.relation, subject, path);
      case 'walk':
        return this.#stored(object, rule.tupleset).some((stored) =>
          this.#holds(stored, rule.computed, subject, path),
        );
      case 'union':
        return rule.children.some(follows);
      case 'intersection':
        return rule.children.every(follows);
      case 'exclusion':
        return follows(rule.include) && !follows(rule.exclude);
    }
  }

  #stored({ type, id }: PeerReference, relation: string): readonly PeerReference[] {
    return this.#tuples
      .filter((tuple) => tuple.object.type === type && tuple.object.id === id)
      .filter((tuple) => tuple.relation === relation)
      .map(({ subject }) => subject);
  }
}
