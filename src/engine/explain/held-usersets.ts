import { EDGE_NODE_MASK, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { PairTable } from '../bound/pair-table.ts';
import { FALSE, type Scope } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';

const ENTRIES_PER_READ_SHIFT = 6;
const chunk = new Uint32Array(256);

/**
 * Every userset that a user may be in, nearest first, found backwards from the tuples of the user and of
 * the wildcard. A superset: operators are passed where one operand suffices to meet them, and tuples that
 * are undecided count. Errors: BUDGET_EXHAUSTED. Cost: O(usersets reached and their tuples) reads.
 */
export class HeldUsersets {
  readonly usersets = new PairTable(64);
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  *collect(userNode: number): Steps<void> {
    const { reader, model } = this.#scope;
    if (userNode !== 0) yield* this.#holders(userNode, (holder) => this.#reachHolder(holder));
    yield* this.#holders(WILDCARD_NODE, (holder) => this.#reachHolder(holder));
    for (let next = 0; next < this.usersets.size; next++) {
      const entity = this.usersets.firstOf(next);
      const relation = this.usersets.secondOf(next);
      const node = reader.nodeId(entity, relation);
      if (node !== 0) yield* this.#holders(node, (holder) => this.#reachHolder(holder));
      for (const use of model.computedUses(reader.namespaceOf(entity), relation)) {
        this.usersets.insert(entity, use.relation);
      }
      if (model.walkUses(relation).length === 0) continue;
      for (let other = reader.firstNodeOf(entity); other !== 0; other = reader.nextNodeOf(other)) {
        yield* this.#holders(other, (holder) => this.#reachReference(holder, relation));
      }
    }
  }

  *#holders(subject: number, reach: (holder: number) => void): Steps<void> {
    const { reader } = this.#scope;
    const total = reader.reverseCount(subject);
    if (total === 0) return;
    this.#scope.charge(1 + (total >> ENTRIES_PER_READ_SHIFT));
    for (let cursor = 0; cursor >= 0;) {
      const count = reader.readReverse(subject, cursor, chunk, 0);
      cursor = reader.nextCursor;
      for (let i = 0; i < count; i++) {
        const holder = (chunk[i] as number) & EDGE_NODE_MASK;
        if (this.#scope.edge(holder, subject) !== FALSE) reach(holder);
      }
      yield;
    }
  }

  #reachHolder(holder: number): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const relation = reader.relationOf(holder);
    const program = model.programOf(reader.namespaceOf(entity), relation);
    if (program === undefined || program.positive.hasThis) this.usersets.insert(entity, relation);
  }

  #reachReference(holder: number, relation: number): void {
    const { reader, model } = this.#scope;
    const entity = reader.entityOf(holder);
    const namespace = reader.namespaceOf(entity);
    const tupleset = reader.relationOf(holder);
    for (const use of model.walkUses(relation)) {
      if (use.namespace !== namespace || use.tupleset !== tupleset) continue;
      this.usersets.insert(entity, use.relation);
    }
  }
}
