import { EDGE_NODE_MASK, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { THIS_OP } from '../bound/bound-model.ts';
import { PairTable } from '../bound/pair-table.ts';
import { FALSE, type Scope, TRUE } from '../bound/scope.ts';

const ENTRIES_PER_READ_SHIFT = 6;
const MAYBE = 1;
const SURE = 2;
const chunk = new Uint32Array(1024);

/** Which usersets below one are searched. `withUndecided`: through tuples that could not be decided, too, and to any depth. */
export type MemberScan =
  /** Necessary sides: one side of an intersection suffices to meet every member (or the wildcard). */
  | 'necessary'
  /** All but exclude sides: meets every member that is stored as a concrete user. */
  | 'mentioned';

/**
 * The concrete users stored anywhere below a userset: all whom it can contain. Breadth first and bounded in depth, so a user whose every way is longer is not listed.
 */
export class MemberSearch {
  /** Users (node, 0) in the order in which they were met. */
  readonly users = new PairTable(64);
  /** The wildcard was met; with `isWildcardSure` it certainly counts. */
  hasWildcard = false;
  isWildcardSure = false;
  /** Whether a userset is beyond the depth bound. */
  isDeep = false;
  readonly #scope: Scope;
  readonly #scan: MemberScan;
  readonly #withUndecided: boolean;
  readonly #isUserSure: boolean[] = [];
  readonly #seen = new PairTable();
  readonly #strength: number[] = [];
  readonly #queue: number[] = []; // quadruples entity, relation, level, strength
  #next = 0;

  constructor(
    scope: Scope,
    entity: number,
    relation: number,
    scan: MemberScan,
    withUndecided = false,
  ) {
    this.#scope = scope;
    this.#scan = scan;
    this.#withUndecided = withUndecided;
    this.#reach(entity, relation, 1, SURE);
  }

  /** Whether a listed user is certainly a member, without further evaluation. */
  isSure(userIndex: number): boolean {
    return this.#isUserSure[userIndex] === true;
  }

  /** Visits one userset; false when all were visited. Errors: BUDGET_EXHAUSTED. */
  step(): boolean {
    if (this.#next >= this.#queue.length) return false;
    const at = this.#next;
    this.#next += 4;
    this.#visit(
      this.#queue[at] as number,
      this.#queue[at + 1] as number,
      this.#queue[at + 2] as number,
      this.#queue[at + 3] as number,
    );
    return true;
  }

  #reach(entity: number, relation: number, level: number, strength: number): void {
    if (relation === 0) return;
    if (level > this.#scope.depthMax) {
      this.isDeep = true;
      this.#scope.hasUndecided = true;
      if (!this.#withUndecided) return;
    }
    const index = this.#seen.insert(entity, relation);
    if ((this.#strength[index] ?? 0) >= strength) return;
    this.#strength[index] = strength;
    this.#queue.push(entity, relation, level, strength);
  }

  #visit(entity: number, relation: number, level: number, reached: number): void {
    const { reader, model } = this.#scope;
    const program = model.programOf(reader.namespaceOf(entity), relation);
    const isNecessary = this.#scan === 'necessary';
    const leaf =
      program === undefined ? THIS_OP : isNecessary ? program.positive : program.mentioning;
    const strength = program === undefined || program.isSimple ? reached : MAYBE;
    this.#scope.charge(1 + (leaf.walks.length >> 1));
    if (leaf.hasThis) {
      const node = reader.nodeId(entity, relation);
      if (node !== 0) {
        this.#addUsers(node, strength === SURE);
        this.#followSets(node, -1, level + 1, strength);
      }
    }
    for (const computed of leaf.computed) this.#reach(entity, computed, level + 1, strength);
    for (let i = 0; i < leaf.walks.length; i += 2) {
      const node = reader.nodeId(entity, leaf.walks[i] as number);
      if (node !== 0) this.#followSets(node, leaf.walks[i + 1] as number, level + 1, strength);
    }
  }

  /** Whether an entry counts; one that holds only through an undecided condition is never TRUE. */
  #counts(node: number, entry: number): boolean {
    const value = this.#scope.entryValue(node, entry);
    return value === TRUE || (this.#withUndecided && value !== FALSE);
  }

  #addUsers(node: number, isSure: boolean): void {
    const { reader } = this.#scope;
    const total = reader.userCount(node);
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    for (let cursor = total === 0 ? -1 : 0; cursor >= 0; cursor = reader.nextCursor) {
      const count = reader.readUsers(node, cursor, chunk, 0);
      for (let i = 0; i < count; i++) {
        const entry = chunk[i] as number;
        if (!this.#counts(node, entry)) continue;
        const user = entry & EDGE_NODE_MASK;
        if (user === WILDCARD_NODE) {
          this.hasWildcard = true;
          if (isSure) this.isWildcardSure = true;
          continue;
        }
        const index = this.users.insert(user, 0);
        this.#isUserSure[index] = isSure || this.#isUserSure[index] === true;
      }
    }
  }

  #followSets(node: number, relation: number, level: number, strength: number): void {
    const { reader } = this.#scope;
    const total = reader.setCount(node);
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    for (let cursor = total === 0 ? -1 : 0; cursor >= 0; cursor = reader.nextCursor) {
      const count = reader.readSets(node, cursor, chunk, 0);
      for (let i = 0; i < count; i++) {
        const entry = chunk[i] as number;
        if (!this.#counts(node, entry)) continue;
        const subject = entry & EDGE_NODE_MASK;
        const next = relation < 0 ? reader.relationOf(subject) : relation;
        this.#reach(reader.entityOf(subject), next, level, strength);
      }
    }
  }
}
