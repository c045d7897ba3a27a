import { EDGE_QUALIFIED, type EdgeQualifier } from '../../model/tuple-reader.ts';

/** The lists of a node. */
export const LIST_USERS = 0;
export const LIST_SETS = 1;
export const LIST_REVERSE = 2;
export type List = 0 | 1 | 2;
const LISTS = 3;

/** State of a changed edge; null is a plain one. */
export type ChangedEdge = EdgeQualifier | null | 'removed';

/** Changes of one list. */
export type ListChanges = {
  /** By member: its entry now, or 0 where it was removed. */
  readonly replaced: ReadonlyMap<number, number>;
  /** Entries that the list below lacks. */
  readonly added: readonly number[];
};

type OwnChanges = {
  replaced: Map<number, number>;
  readonly added: number[];
  growth: number;
};

/** Most nodes are changed on one side, in one list: the others are made when they are. */
type NodeChanges = {
  readonly node: number;
  readonly handle: number;
  edges: Map<number, ChangedEdge> | undefined;
  readonly lists: [OwnChanges | undefined, OwnChanges | undefined, OwnChanges | undefined];
};

/** Replacements in a list that has none. */
const NOTHING: Map<number, number> = new Map();

/** The nodes whose lists are changed, on either side of a tuple. O(1) for each query. */
export class ChangedNodes {
  readonly #nodes = new Map<number, NodeChanges>();
  readonly #byHandle: NodeChanges[] = [];

  /** Sets the qualifier of the tuple (node, subject), whose subject is in `list`. `isStored`: it is stored below. */
  set(
    node: number,
    subject: number,
    list: List,
    isStored: boolean,
    qualifier: EdgeQualifier | null,
  ): void {
    const flag = qualifier === null ? 0 : EDGE_QUALIFIED;
    const changes = this.#of(node);
    (changes.edges ??= new Map()).set(subject, qualifier);
    put(listOf(changes, list), subject, (subject | flag) >>> 0, isStored);
    put(listOf(this.#of(subject), LIST_REVERSE), node, (node | flag) >>> 0, isStored);
  }

  /** The tuple (node, subject), which is stored below, is no longer there. */
  remove(node: number, subject: number, list: List): void {
    const changes = this.#of(node);
    (changes.edges ??= new Map()).set(subject, 'removed');
    take(listOf(changes, list), subject);
    take(listOf(this.#of(subject), LIST_REVERSE), node);
  }

  /** The changed state of a tuple; undefined: as it is below. */
  edge(node: number, subject: number): ChangedEdge | undefined {
    return this.#nodes.get(node)?.edges?.get(subject);
  }

  /** undefined: nothing of the list is changed. */
  listOf(node: number, list: List): ListChanges | undefined {
    return this.#nodes.get(node)?.lists[list];
  }

  /** Entries that the list has more than below. */
  growthOf(node: number, list: List): number {
    return this.#nodes.get(node)?.lists[list]?.growth ?? 0;
  }

  /** A small number that identifies a list of a changed node; -1 of another one. */
  handleOf(node: number, list: List): number {
    const changes = this.#nodes.get(node);
    return changes === undefined ? -1 : changes.handle + list;
  }

  /** Inverse of `handleOf`. Errors: throws on a number that it never gave. */
  listOfHandle(handle: number): { readonly node: number; readonly list: List } {
    const changes = this.#byHandle[Math.floor(handle / LISTS)];
    if (changes === undefined) throw new Error('a handle that was never given');
    return { node: changes.node, list: (handle % LISTS) as List };
  }

  #of(node: number): NodeChanges {
    let changes = this.#nodes.get(node);
    if (changes === undefined) {
      const handle = this.#byHandle.length * LISTS;
      changes = { node, handle, edges: undefined, lists: [undefined, undefined, undefined] };
      this.#nodes.set(node, changes);
      this.#byHandle.push(changes);
    }
    return changes;
  }
}

function listOf(changes: NodeChanges, list: List): OwnChanges {
  return (changes.lists[list] ??= { replaced: NOTHING, added: [], growth: 0 });
}

function replace(list: OwnChanges, member: number, entry: number): void {
  if (list.replaced === NOTHING) list.replaced = new Map();
  list.replaced.set(member, entry);
}

function put(list: OwnChanges, member: number, entry: number, isStored: boolean): void {
  if (isStored) replace(list, member, entry);
  else {
    list.added.push(entry);
    list.growth += 1;
  }
}

function take(list: OwnChanges, member: number): void {
  replace(list, member, 0);
  list.growth -= 1;
}
