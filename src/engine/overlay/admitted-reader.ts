import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  EDGE_WITH_QUALIFIER,
  type EdgeQualifier,
  type EntityLookups,
  type TupleReader,
} from '../../model/tuple-reader.ts';
import type { Admission } from './admission.ts';

/**
 * A reader without the tuples that a model does not admit: for evaluations that must not follow them. What they
 * mention is there all the same, and counts of lists are those of the reader below: none is too small. Only the general
 * evaluation reads it; words of lists, which the hot path takes, it has not.
 *
 * Cost: some lookups more for every entry of a list.
 */
export class AdmittedReader implements TupleReader {
  nextCursor = -1;
  readonly #base: TupleReader;
  readonly #admission: Admission;

  constructor(base: TupleReader, admission: Admission) {
    this.#base = base;
    this.#admission = admission;
  }

  get revision(): number {
    return this.#base.revision;
  }

  get hasTypedWildcards(): boolean {
    return this.#base.hasTypedWildcards;
  }

  /** Nothing is remembered of it. */
  readChange(): boolean {
    return false;
  }

  // --- names and entities ---------------------------------------------------------------------

  nameId(name: string): number {
    return this.#base.nameId(name);
  }

  pinName(name: string): number {
    return this.#base.pinName(name);
  }

  nameText(name: number): string {
    return this.#base.nameText(name);
  }

  entityId(namespace: number, id: string): number {
    return this.#base.entityId(namespace, id);
  }

  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void {
    this.#base.readEntityIds(bytes, lookups, count);
  }

  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.#base.nameIdOfBytes(bytes, start, end);
  }

  namespaceOf(entity: number): number {
    return this.#base.namespaceOf(entity);
  }

  entityText(entity: number): string {
    return this.#base.entityText(entity);
  }

  readEntityId(entity: number, out: Uint8Array, at: number): number {
    return this.#base.readEntityId(entity, out, at);
  }

  compareEntityIds(a: number, b: number): number {
    return this.#base.compareEntityIds(a, b);
  }

  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number {
    const count = this.#base.readEntitiesOf(namespace, cursor, out, outStart);
    this.nextCursor = this.#base.nextCursor;
    return count;
  }

  // --- nodes ----------------------------------------------------------------------------------

  nodeId(entity: number, relation: number): number {
    return this.#base.nodeId(entity, relation);
  }

  userNodeOf(entity: number): number {
    return this.#base.userNodeOf(entity);
  }

  entityOf(node: number): number {
    return this.#base.entityOf(node);
  }

  relationOf(node: number): number {
    return this.#base.relationOf(node);
  }

  firstNodeOf(entity: number): number {
    return this.#base.firstNodeOf(entity);
  }

  nextNodeOf(node: number): number {
    return this.#base.nextNodeOf(node);
  }

  // --- edges ----------------------------------------------------------------------------------

  edge(node: number, subject: number): number {
    const edge = this.#base.edge(node, subject);
    if (edge === EDGE_ABSENT) return EDGE_ABSENT;
    const isQualified = edge === EDGE_WITH_QUALIFIER;
    const isAdmitted = this.#admission.admits(this.#base, node, subject, isQualified);
    return isAdmitted ? edge : EDGE_ABSENT;
  }

  qualifier(node: number, subject: number): EdgeQualifier {
    return this.#base.qualifier(node, subject);
  }

  readQualifier(node: number, subject: number, out: Uint32Array): number {
    return this.#base.readQualifier(node, subject, out);
  }

  bareExpiryMs(node: number, subject: number): number {
    return this.#base.bareExpiryMs(node, subject);
  }

  userCount(node: number): number {
    return this.#base.userCount(node);
  }

  setCount(node: number): number {
    return this.#base.setCount(node);
  }

  reverseCount(node: number): number {
    return this.#base.reverseCount(node);
  }

  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    const count = this.#base.readUsers(node, cursor, out, outStart);
    return this.#keepSubjects(node, out, outStart, count);
  }

  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    const count = this.#base.readSets(node, cursor, out, outStart);
    return this.#keepSubjects(node, out, outStart, count);
  }

  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    const count = this.#base.readReverse(node, cursor, out, outStart);
    this.nextCursor = this.#base.nextCursor;
    let to = outStart;
    for (let i = outStart; i < outStart + count; i++) {
      const entry = out[i] as number;
      if (this.#isAdmitted(entry & EDGE_NODE_MASK, node, entry)) out[to++] = entry;
    }
    return to - outStart;
  }

  #keepSubjects(node: number, out: Uint32Array, outStart: number, count: number): number {
    this.nextCursor = this.#base.nextCursor;
    let to = outStart;
    for (let i = outStart; i < outStart + count; i++) {
      const entry = out[i] as number;
      if (this.#isAdmitted(node, entry & EDGE_NODE_MASK, entry)) out[to++] = entry;
    }
    return to - outStart;
  }

  #isAdmitted(node: number, subject: number, entry: number): boolean {
    return this.#admission.admits(this.#base, node, subject, entry >= EDGE_QUALIFIED);
  }

  // --- words ----------------------------------------------------------------------------------

  readObject(): number {
    return noWords();
  }

  usersWord(): number {
    return noWords();
  }

  setsWord(): number {
    return noWords();
  }

  wordEdge(): number {
    return noWords();
  }

  readWord(): number {
    return noWords();
  }
}

function noWords(): never {
  throw new Error('words are of the hot path, which reads all tuples');
}
