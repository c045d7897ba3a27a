import {
  type RelationTuple,
  type Subject,
  subjectToColumns,
  type TupleKey,
  WILDCARD_NAMESPACE,
} from '../../src/model/relation-tuple.ts';
import {
  EDGE_ABSENT,
  EDGE_NODE_MASK,
  EDGE_PLAIN,
  EDGE_QUALIFIED,
  EDGE_WITH_QUALIFIER,
  EMPTY_NAME,
  type EdgeQualifier,
  type EntityLookups,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
  type TupleReader,
  WILDCARD_NAME,
  WILDCARD_NODE,
  WORD_LIST,
} from '../../src/model/tuple-reader.ts';

/** The port of the index on plain maps: obvious, unbounded, for tests of the engine alone. */
export class SimpleTupleReader implements TupleReader {
  revision = 0;
  nextCursor = -1;
  readonly #names: string[] = ['', WILDCARD_NAMESPACE];
  readonly #nameIds = new Map<string, number>([
    ['', 0],
    [WILDCARD_NAMESPACE, 1],
  ]);
  readonly #entityIds = new Map<string, number>();
  readonly #entities: { namespace: number; id: string; nodes: number[] }[] = [
    { namespace: 0, id: '', nodes: [] },
  ];
  readonly #nodeIds = new Map<string, number>();
  readonly #nodes: { entity: number; relation: number; next: number }[] = [
    { entity: 0, relation: 0, next: 0 },
    { entity: 0, relation: 0, next: 0 },
  ];
  readonly #forward = new Map<number, Map<number, EdgeQualifier | null>>();
  readonly #reverse = new Map<number, Set<number>>();

  insert(tuple: RelationTuple): void {
    const node = this.#internNode(tuple.namespace, tuple.objectId, tuple.relation);
    const subject = this.#internSubject(tuple.subject);
    const isPlain = tuple.expiresAtUs === undefined && tuple.conditionName === undefined;
    const qualifier = {
      expiresAtMs:
        tuple.expiresAtUs === undefined
          ? Number.POSITIVE_INFINITY
          : Number(tuple.expiresAtUs) / 1000,
      conditionName: tuple.conditionName ?? '',
      conditionParams: tuple.conditionParams ?? '',
    };
    let edges = this.#forward.get(node);
    if (edges === undefined) this.#forward.set(node, (edges = new Map()));
    edges.set(subject, isPlain ? null : qualifier);
    let holders = this.#reverse.get(subject);
    if (holders === undefined) this.#reverse.set(subject, (holders = new Set()));
    holders.add(node);
    this.revision++;
  }

  delete(key: TupleKey): void {
    const node = this.#internNode(key.namespace, key.objectId, key.relation);
    const subject = this.#internSubject(key.subject);
    this.#forward.get(node)?.delete(subject);
    this.#reverse.get(subject)?.delete(node);
    this.revision++;
  }

  /** Remembers no change: all that was derived is dropped. */
  readChange(): boolean {
    return false;
  }
  nameId(name: string): number {
    return this.#nameIds.get(name) ?? -1;
  }
  pinName(name: string): number {
    let id = this.#nameIds.get(name);
    if (id === undefined) {
      id = this.#names.push(name) - 1;
      this.#nameIds.set(name, id);
    }
    return id;
  }
  nameText(name: number): string {
    return this.#names[name] ?? '';
  }
  entityId(namespace: number, id: string): number {
    return this.#entityIds.get(`${namespace}:${id}`) ?? 0;
  }
  readEntityIds(bytes: Uint8Array, lookups: EntityLookups, count: number): void {
    for (let i = 0; i < count; i++) {
      const id = bytes.subarray(lookups.starts[i], lookups.ends[i]);
      const namespace = lookups.namespaces[i] ?? -1;
      lookups.entities[i] = this.entityId(namespace, new TextDecoder().decode(id));
    }
  }
  userNodeOf(entity: number): number {
    return entity === 0 ? 0 : this.nodeId(entity, EMPTY_NAME);
  }
  nameIdOfBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.nameId(new TextDecoder().decode(bytes.subarray(start, end)));
  }
  get hasTypedWildcards(): boolean {
    return this.#entities.some(({ namespace }) => namespace === WILDCARD_NAME);
  }
  namespaceOf(entity: number): number {
    return this.#entities[entity]?.namespace ?? 0;
  }
  entityText(entity: number): string {
    return this.#entities[entity]?.id ?? '';
  }
  readEntityId(entity: number, out: Uint8Array, at: number): number {
    const bytes = Buffer.from(this.entityText(entity));
    out.set(bytes, at);
    return at + bytes.length;
  }

  compareEntityIds(a: number, b: number): number {
    return Buffer.compare(Buffer.from(this.entityText(a)), Buffer.from(this.entityText(b)));
  }
  nodeId(entity: number, relation: number): number {
    return this.#nodeIds.get(`${entity}#${relation}`) ?? 0;
  }
  entityOf(node: number): number {
    return this.#nodes[node]?.entity ?? 0;
  }
  relationOf(node: number): number {
    return this.#nodes[node]?.relation ?? 0;
  }
  firstNodeOf(entity: number): number {
    return this.#entities[entity]?.nodes[0] ?? 0;
  }
  nextNodeOf(node: number): number {
    const nodes = this.#entities[this.entityOf(node)]?.nodes ?? [];
    return nodes[nodes.indexOf(node) + 1] ?? 0;
  }
  readObject(entity: number, out: Uint32Array): number {
    const nodes = this.#entities[entity]?.nodes ?? [];
    if (nodes.length * OBJECT_STRIDE > out.length) return -1;
    nodes.forEach((node, i) => {
      out[i * OBJECT_STRIDE + OBJECT_RELATION] = this.relationOf(node);
      out[i * OBJECT_STRIDE + OBJECT_NODE] = node;
      out[i * OBJECT_STRIDE + OBJECT_USERS] = this.usersWord(node);
      out[i * OBJECT_STRIDE + OBJECT_SETS] = this.setsWord(node);
    });
    return nodes.length;
  }
  usersWord(node: number): number {
    return this.#word(node, true);
  }
  setsWord(node: number): number {
    return this.#word(node, false);
  }
  wordEdge(word: number, node: number, subject: number): number {
    const list = this.#listOfWord(word);
    return list.some((entry) => (entry & EDGE_NODE_MASK) === subject)
      ? this.edge(node, subject)
      : EDGE_ABSENT;
  }
  readWord(word: number, out: Uint32Array): number {
    const list = this.#listOfWord(word);
    if (list.length > out.length) return -1;
    out.set(list);
    return list.length;
  }
  edge(node: number, subject: number): number {
    const qualifier = this.#forward.get(node)?.get(subject);
    if (qualifier === undefined) return EDGE_ABSENT;
    return qualifier === null ? EDGE_PLAIN : EDGE_WITH_QUALIFIER;
  }
  /** Leaves all to `qualifier`. */
  readQualifier(): number {
    return -1;
  }
  bareExpiryMs(node: number, subject: number): number {
    const { expiresAtMs, conditionName } = this.qualifier(node, subject);
    return conditionName === '' ? expiresAtMs : Number.NaN;
  }

  qualifier(node: number, subject: number): EdgeQualifier {
    const qualifier = this.#forward.get(node)?.get(subject);
    if (!qualifier) throw new Error('no qualified edge');
    return qualifier;
  }
  userCount(node: number): number {
    return this.#subjects(node, true).length;
  }
  setCount(node: number): number {
    return this.#subjects(node, false).length;
  }
  reverseCount(node: number): number {
    return this.#reverse.get(node)?.size ?? 0;
  }
  readUsers(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#copy(this.#subjects(node, true), cursor, out, outStart);
  }
  readSets(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    return this.#copy(this.#subjects(node, false), cursor, out, outStart);
  }
  readReverse(node: number, cursor: number, out: Uint32Array, outStart: number): number {
    const holders = [...(this.#reverse.get(node) ?? [])].map((holder) =>
      this.#forward.get(holder)?.get(node) ? (holder | EDGE_QUALIFIED) >>> 0 : holder,
    );
    return this.#copy(holders, cursor, out, outStart);
  }
  readEntitiesOf(namespace: number, cursor: number, out: Uint32Array, outStart: number): number {
    const ids = this.#entities.flatMap((entity, id) =>
      entity.namespace === namespace && id ? [id] : [],
    );
    return this.#copy(ids, cursor, out, outStart);
  }

  #word(node: number, users: boolean): number {
    const list = this.#subjects(node, users);
    if (list.length > 1) return WORD_LIST + node * 2 + (users ? 1 : 0);
    return list[0] ?? 0;
  }

  #listOfWord(word: number): number[] {
    if (word === 0) return [];
    if ((word & WORD_LIST) === 0) return [word];
    const handle = word - WORD_LIST;
    return this.#subjects(handle >>> 1, (handle & 1) === 1);
  }

  #subjects(node: number, users: boolean): number[] {
    const list: number[] = [];
    for (const [subject, qualifier] of this.#forward.get(node) ?? []) {
      const isUser = subject === WILDCARD_NODE || this.namespaceOf(this.entityOf(subject)) === 0;
      if (isUser === users) list.push(qualifier ? (subject | EDGE_QUALIFIED) >>> 0 : subject);
    }
    return list;
  }

  #copy(list: readonly number[], cursor: number, out: Uint32Array, outStart: number): number {
    const count = Math.min(list.length - cursor, out.length - outStart);
    for (let i = 0; i < count; i++) out[outStart + i] = list[cursor + i] as number;
    this.nextCursor = cursor + count < list.length ? cursor + count : -1;
    return count;
  }

  #internSubject(subject: Subject): number {
    if (subject.kind === 'wildcard') return WILDCARD_NODE;
    return this.#internNode(...subjectToColumns(subject));
  }

  #internNode(namespace: string, id: string, relation: string): number {
    const entityKey = `${this.pinName(namespace)}:${id}`;
    let entity = this.#entityIds.get(entityKey);
    if (entity === undefined) {
      entity = this.#entities.push({ namespace: this.pinName(namespace), id, nodes: [] }) - 1;
      this.#entityIds.set(entityKey, entity);
    }
    const nodeKey = `${entity}#${this.pinName(relation)}`;
    let node = this.#nodeIds.get(nodeKey);
    if (node === undefined) {
      node = this.#nodes.push({ entity, relation: this.pinName(relation), next: 0 }) - 1;
      this.#nodeIds.set(nodeKey, node);
      this.#entities[entity]?.nodes.push(node);
    }
    return node;
  }
}
