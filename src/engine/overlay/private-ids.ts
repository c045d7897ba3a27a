import { type Subject, subjectToColumns } from '../../model/relation-tuple.ts';
import { type TupleReader, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { PairTable } from '../bound/pair-table.ts';

/**
 * First private ids: names of an index are numbered densely, its entities end at 0x7fff_0000, its nodes at
 * 0x3fff_ffff.
 */
export const PRIVATE_NAME = 0x2000_0000;
export const PRIVATE_ENTITY = 0x8000_0000;
export const PRIVATE_NODE = 0x4000_0000;

/**
 * Ids of names, entities and nodes that a reader lacks, for one request; those that it has keep theirs. Nothing is
 * interned in the reader. O(1) for each query.
 */
export class PrivateIds {
  readonly #base: TupleReader;
  readonly #names: string[] = [];
  readonly #nameIds = new Map<string, number>();
  readonly #entities: { readonly namespace: number; readonly text: string }[] = [];
  readonly #entityIds = new Map<string, number>();
  readonly #entitiesOf = new Map<number, number[]>();
  readonly #nodes = new PairTable();
  /** By entity, the node added last; by node, the one before it. */
  readonly #lastNodeOf = new Map<number, number>();
  readonly #nextNode: number[] = [];

  constructor(base: TupleReader) {
    this.#base = base;
  }

  /** -1: unknown. */
  nameId(name: string): number {
    const id = this.#base.nameId(name);
    return id >= 0 ? id : (this.#nameIds.get(name) ?? -1);
  }

  internName(name: string): number {
    const known = this.nameId(name);
    if (known >= 0) return known;
    const id = PRIVATE_NAME + this.#names.push(name) - 1;
    this.#nameIds.set(name, id);
    return id;
  }

  nameText(name: number): string {
    return mustHave(this.#names[name - PRIVATE_NAME]);
  }

  /** 0: unknown. */
  entityId(namespace: number, text: string): number {
    if (namespace < 0) return 0;
    const id = namespace < PRIVATE_NAME ? this.#base.entityId(namespace, text) : 0;
    return id !== 0 ? id : (this.#entityIds.get(`${namespace} ${text}`) ?? 0);
  }

  namespaceOf(entity: number): number {
    return mustHave(this.#entities[entity - PRIVATE_ENTITY]).namespace;
  }

  entityText(entity: number): string {
    return mustHave(this.#entities[entity - PRIVATE_ENTITY]).text;
  }

  /** Private ones of a namespace. */
  entitiesOf(namespace: number): readonly number[] {
    return this.#entitiesOf.get(namespace) ?? [];
  }

  /** 0: unknown. */
  nodeId(entity: number, relation: number): number {
    if (entity === 0 || relation < 0) return 0;
    if (entity < PRIVATE_ENTITY && relation < PRIVATE_NAME) {
      const node = this.#base.nodeId(entity, relation);
      if (node !== 0) return node;
    }
    const index = this.#nodes.indexOf(entity, relation);
    return index < 0 ? 0 : PRIVATE_NODE + index;
  }

  entityOf(node: number): number {
    return this.#nodes.firstOf(node - PRIVATE_NODE);
  }

  relationOf(node: number): number {
    return this.#nodes.secondOf(node - PRIVATE_NODE);
  }

  /** The first private node of any entity, 0 for none. */
  firstNodeOf(entity: number): number {
    return this.#lastNodeOf.get(entity) ?? 0;
  }

  nextNodeOf(node: number): number {
    return this.#nextNode[node - PRIVATE_NODE] ?? 0;
  }

  internNode(namespace: string, id: string, relation: string): number {
    const entity = this.#internEntity(this.internName(namespace), id);
    const name = this.internName(relation);
    const known = this.nodeId(entity, name);
    if (known !== 0) return known;
    const node = PRIVATE_NODE + this.#nodes.insert(entity, name);
    this.#nextNode.push(this.firstNodeOf(entity));
    this.#lastNodeOf.set(entity, node);
    return node;
  }

  internSubject(subject: Subject): number {
    if (subject.kind === 'wildcard') return WILDCARD_NODE;
    return this.internNode(...subjectToColumns(subject));
  }

  /** The node that the reader itself has, 0 for none. */
  baseNode(namespace: string, id: string, relation: string): number {
    const base = this.#base;
    const name = base.nameId(namespace);
    if (name < 0) return 0;
    const entity = base.entityId(name, id);
    return entity === 0 ? 0 : base.nodeId(entity, base.nameId(relation));
  }

  /** The subject's node that the reader itself has, 0 for none. */
  baseSubject(subject: Subject): number {
    if (subject.kind === 'wildcard') return WILDCARD_NODE;
    return this.baseNode(...subjectToColumns(subject));
  }

  #internEntity(namespace: number, text: string): number {
    const known = this.entityId(namespace, text);
    if (known !== 0) return known;
    const id = PRIVATE_ENTITY + this.#entities.push({ namespace, text }) - 1;
    this.#entityIds.set(`${namespace} ${text}`, id);
    const all = this.#entitiesOf.get(namespace);
    if (all === undefined) this.#entitiesOf.set(namespace, [id]);
    else all.push(id);
    return id;
  }
}

function mustHave<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a private id that was never given');
  return value;
}
