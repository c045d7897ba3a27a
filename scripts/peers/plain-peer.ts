import type {
  PeerModel,
  PeerReference,
  PeerRule,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';
import { admits, type PeerQuestion, referenceText } from './random-store.ts';

/** What is known of a question; `cycle`: a way led back to itself, and nobody was found on another. */
export type PlainAnswer = { readonly value: boolean | 'error'; readonly isCyclic: boolean };

export type PlainPeerOptions = {
  readonly model: PeerModel;
  /** Stored and contextual ones; what the model does not admit is passed over. */
  readonly tuples: readonly PeerTuple[];
  readonly context: Readonly<Record<string, unknown>>;
  /**
   * `there`: a cycle denies what rests on it, and a condition without its input is an error before it is looked what it guards.
   * `here`: a cycle adds nobody, and such a condition is an error where what it guards is so.
   */
  readonly rules: 'there' | 'here';
  /**
   * Whether of several operands that deny the cyclic one counts. OpenFGA takes the one that ends first, so that one question has both
   * answers.
   */
  readonly areCyclesFirst?: boolean | undefined;
};

const NO: PlainAnswer = { value: false, isCyclic: false };
const YES: PlainAnswer = { value: true, isCyclic: false };

/**
 * Answers a question of a random store by the rules of OpenFGA as they are said, with no regard to cost: says why the
 * answers of both systems differ. Knows the conditions of random models only.
 */
export class PlainPeer {
  readonly #options: PlainPeerOptions;
  readonly #tuples = new Map<string, PeerTuple[]>();

  constructor(options: PlainPeerOptions) {
    this.#options = options;
    for (const tuple of options.tuples) {
      if (!admits(options.model, tuple)) continue;
      const key = `${referenceText(tuple.object)}#${tuple.relation}`;
      const known = this.#tuples.get(key);
      if (known === undefined) this.#tuples.set(key, [tuple]);
      else known.push(tuple);
    }
  }

  answer({ object, relation, subject }: PeerQuestion): PlainAnswer {
    return this.#holds(object, relation, subject, new Set());
  }

  #holds(
    object: PeerReference,
    relation: string,
    subject: PeerReference,
    path: ReadonlySet<string>,
  ): PlainAnswer {
    const key = `${referenceText(object)}#${relation}`;
    if (key === referenceText(subject)) return YES;
    if (path.has(key)) return { value: false, isCyclic: true };
    const declared = this.#options.model.types
      .find(({ name }) => name === object.type)
      ?.relations.find(({ name }) => name === relation);
    if (declared === undefined) return { value: 'error', isCyclic: false };
    return this.#follows(object, relation, declared.rule, subject, new Set(path).add(key));
  }

  #follows(
    object: PeerReference,
    relation: string,
    rule: PeerRule,
    subject: PeerReference,
    path: ReadonlySet<string>,
  ): PlainAnswer {
    const follow = (inner: PeerRule): PlainAnswer =>
      this.#follows(object, relation, inner, subject, path);
    const stored = (name: string): readonly PeerTuple[] =>
      this.#tuples.get(`${referenceText(object)}#${name}`) ?? [];
    switch (rule.op) {
      case 'nil':
        return NO;
      case 'computed':
        return this.#holds(object, rule.relation, subject, path);
      case 'this':
        return anyOf(
          stored(relation)
            .filter((tuple) => isUserset(tuple) || isGrantTo(tuple.subject, subject))
            .map((tuple) => this.#guarded(tuple, () => this.#grants(tuple.subject, subject, path))),
        );
      case 'walk':
        return anyOf(
          stored(rule.tupleset)
            .filter(({ subject: { type } }) => this.#has(type, rule.computed))
            .map((tuple) =>
              this.#guarded(tuple, () => this.#holds(tuple.subject, rule.computed, subject, path)),
            ),
        );
      case 'union':
        return anyOf(rule.children.map(follow));
      case 'intersection':
        return this.#allOf(rule.children.map(follow));
      case 'exclusion': {
        const excluded = follow(rule.exclude);
        const isOut = this.#denies(excluded);
        const value = isOut ? false : excluded.value === 'error' ? 'error' : true;
        const isCyclic = excluded.isCyclic && isOut;
        return this.#allOf([follow(rule.include), { value, isCyclic }]);
      }
    }
  }

  /** Of what is taken away: whether it denies. */
  #denies({ value, isCyclic }: PlainAnswer): boolean {
    return value === true || (isCyclic && this.#options.rules === 'there');
  }

  #grants(granted: PeerReference, subject: PeerReference, path: ReadonlySet<string>): PlainAnswer {
    const { relation } = granted;
    if (relation !== '') return this.#holds({ ...granted, relation: '' }, relation, subject, path);
    return isGrantTo(granted, subject) ? YES : NO;
  }

  #allOf(all: readonly PlainAnswer[]): PlainAnswer {
    const denials = all.filter(({ value }) => value === false);
    const { areCyclesFirst = false } = this.#options;
    const [first] = denials;
    const cyclic = areCyclesFirst ? denials.find(({ isCyclic }) => isCyclic) : undefined;
    if (first !== undefined) return cyclic ?? first;
    return all.some(({ value }) => value === 'error') ? { value: 'error', isCyclic: false } : YES;
  }

  #guarded(tuple: PeerTuple, answer: () => PlainAnswer): PlainAnswer {
    const condition = this.#condition(tuple);
    if (condition === true) return answer();
    if (condition === false) return NO;
    const isSo = this.#options.rules === 'there' || answer().value !== false;
    return isSo ? { value: 'error', isCyclic: false } : NO;
  }

  #has(type: string, relation: string): boolean {
    return this.#options.model.types.some(
      ({ name, relations }) => name === type && relations.some((one) => one.name === relation),
    );
  }

  #condition({ condition, context }: PeerTuple): boolean | 'error' {
    if (condition === undefined) return true;
    // A tuple's own values come first.
    const values = { ...this.#options.context, ...(context as Record<string, unknown>) };
    const { level, top, name, names, is_open: isOpen } = values;
    if (condition === 'below') {
      return level === undefined || top === undefined ? 'error' : Number(level) < Number(top);
    }
    if (condition === 'named') {
      const list = names as readonly unknown[] | undefined;
      return name === undefined || list === undefined ? 'error' : list.includes(name);
    }
    return isOpen === undefined ? 'error' : isOpen === true;
  }
}

const isUserset = ({ subject }: PeerTuple): boolean => subject.relation !== '';

/** Whether a grant to an object, or to all of a type, is one to the subject: no other is read, whatever its condition. */
function isGrantTo(granted: PeerReference, subject: PeerReference): boolean {
  const isMeant = granted.id === '*' || granted.id === subject.id;
  return granted.type === subject.type && isMeant && subject.relation === '';
}

function anyOf(all: readonly PlainAnswer[]): PlainAnswer {
  if (all.some(({ value }) => value === true)) return YES;
  const value = all.some((one) => one.value === 'error') ? 'error' : false;
  return { value, isCyclic: all.some(({ isCyclic }) => isCyclic) };
}
