import {
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  EMPTY_NAME,
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
  type TupleReader,
  WILDCARD_NODE,
} from '../../src/model/tuple-reader.ts';

/** A node as text; the wildcard's is `*`. */
export function nodeText(reader: TupleReader, node: number): string {
  if (node === WILDCARD_NODE) return '*';
  const entity = reader.entityOf(node);
  const namespace = reader.nameText(reader.namespaceOf(entity));
  return `${namespace}:${reader.entityText(entity)}#${reader.nameText(reader.relationOf(node))}`;
}

type ReadList = (node: number, cursor: number, out: Uint32Array, outStart: number) => number;

/** All entries of a list, in chunks of `chunk`, from some place within the buffer. */
function entriesOf(reader: TupleReader, read: ReadList, node: number, chunk: number): number[] {
  const out = new Uint32Array(chunk + 2);
  const entries: number[] = [];
  for (let cursor = 0; cursor >= 0; cursor = reader.nextCursor) {
    const count = read(node, cursor, out, 2);
    for (let i = 0; i < count; i++) entries.push(out[2 + i] as number);
  }
  return entries;
}

/**
 * Everything that a reader says of the entities of some namespaces ('' are users), sorted, as text: so that two
 * readers with other ids can be compared. Errors: throws where the reader contradicts itself.
 */
export function readerText(
  reader: TupleReader,
  namespaces: readonly string[],
  chunk: number,
): string[] {
  const lines: string[] = [];
  const same = (a: unknown, b: unknown, what: string): void => {
    if (JSON.stringify(a) !== JSON.stringify(b)) {
      throw new Error(`${what}: ${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
    }
  };
  const edgeText = (node: number, subject: number, entry: number, of: string): string => {
    const kind = reader.edge(node, subject);
    same(kind, entry >= EDGE_QUALIFIED ? 2 : 1, `edge of ${of}`);
    const text = nodeText(reader, of === 'reverse' ? node : subject);
    if (kind === 1) return text;
    const { expiresAtMs, conditionName, conditionParams } = reader.qualifier(node, subject);
    return `${text} ${expiresAtMs} ${conditionName} ${conditionParams}`;
  };
  const nodeLines = (node: number): void => {
    const readUsers: ReadList = (...args) => reader.readUsers(...args);
    const readSets: ReadList = (...args) => reader.readSets(...args);
    const readReverse: ReadList = (...args) => reader.readReverse(...args);
    const users = entriesOf(reader, readUsers, node, chunk);
    const sets = entriesOf(reader, readSets, node, chunk);
    const holders = entriesOf(reader, readReverse, node, chunk);
    same(users.length, reader.userCount(node), 'users counted');
    same(sets.length, reader.setCount(node), 'sets counted');
    same(holders.length, reader.reverseCount(node), 'holders counted');
    for (const [word, entries] of [
      [reader.usersWord(node), users],
      [reader.setsWord(node), sets],
    ] as const) {
      const out = new Uint32Array(64);
      const count = word === 0 ? 0 : reader.readWord(word, out);
      same([...out.subarray(0, count)], entries, 'word');
      for (const entry of entries) {
        const subject = entry & EDGE_NODE_MASK;
        same(reader.wordEdge(word, node, subject), reader.edge(node, subject), 'edge of a word');
      }
    }
    const texts = [
      ...users.map((entry) => `user ${edgeText(node, entry & EDGE_NODE_MASK, entry, 'users')}`),
      ...sets.map((entry) => `set ${edgeText(node, entry & EDGE_NODE_MASK, entry, 'sets')}`),
      ...holders.map((entry) => `by ${edgeText(entry & EDGE_NODE_MASK, node, entry, 'reverse')}`),
    ];
    for (const text of texts) lines.push(`${nodeText(reader, node)} ${text}`);
  };
  nodeLines(WILDCARD_NODE);
  for (const namespace of namespaces) {
    const name = reader.nameId(namespace);
    if (name < 0) continue;
    const readEntities: ReadList = (...args) => reader.readEntitiesOf(...args);
    for (const entity of entriesOf(reader, readEntities, name, chunk)) {
      const id = reader.entityText(entity);
      lines.push(`entity ${namespace}:${id}`);
      same(reader.entityId(name, id), entity, 'entity by its text');
      same(reader.compareEntityIds(entity, entity), 0, 'order');
      const nodes: number[] = [];
      for (let node = reader.firstNodeOf(entity); node !== 0; node = reader.nextNodeOf(node)) {
        nodes.push(node);
      }
      for (const node of nodes) {
        lines.push(`node ${nodeText(reader, node)}`);
        same(reader.entityOf(node), entity, 'entity of a node');
        same(reader.nodeId(entity, reader.relationOf(node)), node, 'node by its relation');
        nodeLines(node);
      }
      const object = new Uint32Array(64);
      const count = reader.readObject(entity, object);
      if (count >= 0) {
        const words = Array.from({ length: count }, (_, i) => i * OBJECT_STRIDE).map((at) => [
          object[at + OBJECT_RELATION],
          object[at + OBJECT_NODE],
          object[at + OBJECT_USERS],
          object[at + OBJECT_SETS],
        ]);
        const wanted = nodes.map((node) => [
          reader.relationOf(node),
          node,
          reader.usersWord(node),
          reader.setsWord(node),
        ]);
        same(words.toSorted(byNode), wanted.toSorted(byNode), 'object');
      }
      if (name === EMPTY_NAME) same(reader.userNodeOf(entity), nodes[0] ?? 0, 'node of a user');
    }
  }
  return lines.toSorted();
}

function byNode(a: readonly (number | undefined)[], b: readonly (number | undefined)[]): number {
  return (a[1] ?? 0) - (b[1] ?? 0);
}
