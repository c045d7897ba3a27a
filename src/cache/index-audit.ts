import { createHash } from 'node:crypto';
import {
  EDGE_ABSENT,
  EDGE_PLAIN,
  EDGE_WITH_QUALIFIER,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import type { IndexParts } from './edge-writer.ts';
import { IndexDamage, type IndexPart, IndexTally } from './index-tally.ts';
import { isPublicWildcardAt } from './row-loader.ts';
import { FORWARD, REVERSE } from './tables/adjacency.ts';
import { NAME_OWNER } from './tables/dictionary.ts';
import {
  NODE_IS_USER,
  NODE_RELATION,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
} from './tables/node-table.ts';
import { NEVER_US } from './tables/qualifier-store.ts';
import type { TupleIndex } from './tuple-index.ts';
import { ROW_BOUNDS } from './tuple-row.ts';
import type { RowBytes, TupleRow } from './tuple-row.ts';

/** Columns that identify a tuple. */
const KEY_COLUMNS = 6;
const SUBJECT_NAMESPACE = 6;
const EXPIRES = 12;
const CONDITION = 14;
const PARAMS = 16;
/** Changes of rows that a page may have shown otherwise; beyond it the comparison is given up. */
const RECENT_MAX = 10_000;
const NO_BYTES = new Uint8Array(0);

/** A difference of an index: the part, what does not hold there, and of how many rows. */
export type IndexDifference = {
  readonly part: IndexPart;
  readonly message: string;
  /** Rows compared, and those of them that the index holds otherwise. */
  readonly rows: number;
  readonly differing: number;
};

/** Change that came after the page under comparison was queried. */
type Recent = { readonly key: Buffer; readonly seq: number; readonly net: number };

/**
 * Compares an index with the stored rows of its shard, page by page in the order of their keys, while changes continue:
 * each must be passed in before and after it is applied. A page is the state of one revision, which the index must
 * have reached; rows that changed since are left to the next comparison, and counted. Each stored row is found forward
 * and in reverse with all it carries. Either direction has as many entries as rows are stored: so the index holds
 * nothing else.
 */
export class IndexAudit {
  readonly #index: TupleIndex;
  readonly #tally: IndexTally;
  /** Key of the last row compared; what comes up to it was counted. */
  #cursor: Buffer | null = null;
  #isEnd = false;
  #stored = 0;
  #compared = 0;
  #differing = 0;
  #example = '';
  #recent: Recent[] | null = null;
  /** Keys of `#recent`, for each row to look itself up. */
  readonly #recentKeys = new Set<string>();
  #isTooBusy = false;
  #countBefore = 0;
  #damage: IndexDamage | null = null;

  constructor(index: TupleIndex) {
    this.#index = index;
    this.#tally = new IndexTally(index);
  }

  /** Rows compared so far. */
  get rows(): number {
    return this.#compared;
  }

  /** Whether what was counted so far is of no use: the index was emptied, or changes too fast. */
  get isVoid(): boolean {
    return this.#isTooBusy || this.#tally.isVoid;
  }

  /** Before a change of this tuple is applied. Never throws. */
  before(row: TupleRow): void {
    this.#countBefore = this.#index.tupleCount;
    this.#guarded(() => this.#tally.before(row));
  }

  /** After it, with the revision that it is of. Never throws. */
  after(row: TupleRow, seq: number): void {
    this.#guarded(() => this.#tally.after(row));
    const net = this.#index.tupleCount - this.#countBefore;
    if (net === 0 && this.#recent === null) return;
    const key = keyOf(row);
    if (this.#isEnd || (this.#cursor !== null && Buffer.compare(key, this.#cursor) <= 0)) {
      this.#stored += net;
    } else if (this.#recent !== null) {
      if (this.#recent.length < RECENT_MAX) {
        this.#recent.push({ key, seq, net });
        this.#recentKeys.add(key.toString('latin1'));
      } else this.#isTooBusy = true;
    }
  }

  /** Walks over the nodes of the index until `isOver` or done; see IndexTally. Returns how many it walked over. */
  walk(isOver: () => boolean): {
    readonly walked: number;
    readonly difference: IndexDifference | null;
  } {
    let walked = 0;
    const difference = this.#found(() => {
      walked = this.#tally.step(isOver);
    });
    return { walked, difference };
  }

  get isWalked(): boolean {
    return this.#tally.isDone;
  }

  /** A page of rows is being requested: changes that are applied from now on may or may not be in it. */
  beginPage(): void {
    this.#recent = [];
    this.#recentKeys.clear();
  }

  /**
   * Compares the rows of a page from `from` on until `isOver`; returns the next one. The index is at the page's revision or
   * above. Rows that changed meanwhile are passed over.
   */
  compareRows(page: RowBytes, from: number, isOver: () => boolean): number {
    let row = from;
    for (; row < page.rows; row++) {
      if (row > from && (row & 15) === 0 && isOver()) break;
      this.#compared += 1;
      const what = this.#isRecent(page, row) ? null : this.#differenceOf(page, row);
      if (what === null) continue;
      this.#differing += 1;
      if (this.#example === '') this.#example = `${what}: ${exampleOf(page, row)}`;
    }
    return row;
  }

  /** All rows of the page, the state of `revision`, are compared; `isLast`: there are no more. */
  endPage(page: RowBytes, seq: number, isLast: boolean): IndexDifference | null {
    const end = page.rows === 0 ? null : pageKey(page, page.rows - 1);
    this.#stored += page.rows;
    for (const change of this.#recent ?? []) {
      const isInside = isLast || (end !== null && Buffer.compare(change.key, end) <= 0);
      if (isInside && change.seq > seq) this.#stored += change.net;
    }
    this.#recent = null;
    this.#recentKeys.clear();
    this.#cursor = end ?? this.#cursor;
    this.#isEnd = isLast;
    if (this.#differing === 0) return null;
    return this.#differenceIn('tuples', this.#example);
  }

  /** After the walk and the last page: compares what was counted. */
  finish(): IndexDifference | null {
    return this.#found(() => {
      this.#tally.compare();
      if (this.#stored === this.#index.tupleCount) return;
      throw new IndexDamage(
        'tuples',
        `the index holds ${this.#index.tupleCount} tuples where ${this.#stored} are stored`,
      );
    });
  }

  #isRecent(page: RowBytes, row: number): boolean {
    if (this.#recentKeys.size === 0) return false;
    return this.#recentKeys.has(pageKey(page, row).toString('latin1'));
  }

  #differenceOf(page: RowBytes, row: number): string | null {
    try {
      return this.#compare(page, row * ROW_BOUNDS);
    } catch (error) {
      // A read by a damaged id may fail in any way.
      return error instanceof Error ? error.message : String(error);
    }
  }

  #compare(page: RowBytes, at: number): string | null {
    const { parts } = this.#index;
    const { nodes, adjacency, qualifiers } = parts;
    const { bytes, bounds } = page;
    const node = nodeAt(parts, page, at);
    const isWildcard = isPublicWildcardAt(bytes, bounds, at);
    const subject = isWildcard ? WILDCARD_NODE : nodeAt(parts, page, at + SUBJECT_NAMESPACE);
    if (node === 0 || subject === 0) return 'a stored tuple is not in the index';
    const expires = expiryAt(page, at + EXPIRES);
    const condition =
      (bounds[at + CONDITION] as number) < 0 ? 0 : nameAt(parts, page, at + CONDITION);
    const isQualified = expires !== NEVER_US || condition !== 0;
    const wanted = isQualified ? EDGE_WITH_QUALIFIER : EDGE_PLAIN;
    const isUser = (nodes.field(subject, NODE_RELATION) & NODE_IS_USER) !== 0;
    const word = nodes.field(node, isUser ? NODE_USERS : NODE_SETS);
    const forward = word === 0 ? EDGE_ABSENT : adjacency.edge(word, node, subject, FORWARD);
    if (forward !== wanted) return 'a stored tuple is not found by its object';
    const holders = nodes.field(subject, NODE_REVERSE);
    const reverse = holders === 0 ? EDGE_ABSENT : adjacency.edge(holders, subject, node, REVERSE);
    if (reverse !== wanted) return 'a stored tuple is not found by its subject';
    if (!isQualified) return null;
    const paramsStart = bounds[at + PARAMS] as number;
    const params =
      paramsStart < 0 ? NO_BYTES : bytes.subarray(paramsStart, bounds[at + PARAMS + 1]);
    const low = Number(BigInt.asUintN(32, expires));
    const high = Number(BigInt.asUintN(32, expires >> 32n));
    const isSame = qualifiers.matches(node, subject, low, high, condition, params);
    return isSame ? null : 'a stored tuple carries something else in the index';
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#damage ??= asDamage(error);
    }
  }

  #found(work: () => void): IndexDifference | null {
    this.#guarded(() => {
      if (this.#damage === null) work();
    });
    return this.#damage === null
      ? null
      : this.#differenceIn(this.#damage.part, this.#damage.message);
  }

  #differenceIn(part: IndexPart, message: string): IndexDifference {
    return { part, message, rows: this.#compared, differing: this.#differing };
  }
}

function asDamage(error: unknown): IndexDamage {
  if (error instanceof IndexDamage) return error;
  // A read of a page that is not there, or an assertion of the part that was asked.
  return new IndexDamage('nodes', error instanceof Error ? error.message : String(error));
}

/** The node that three columns from `at` on name; 0 if there is none. */
function nodeAt(parts: IndexParts, page: RowBytes, at: number): number {
  const { dictionary, nodes } = parts;
  const { bytes, bounds } = page;
  const owner = nameAt(parts, page, at);
  const relation = nameAt(parts, page, at + 4);
  if (owner < 0 || relation < 0) return 0;
  const start = bounds[at + 2] as number;
  const entity = dictionary.findBytes(owner, bytes, start, bounds[at + 3] as number);
  return entity === 0 ? 0 : nodes.nodeOf(entity, relation);
}

/** The name of a column, if its record and its id lead to each other and it is mentioned; -1 otherwise. */
function nameAt({ names, dictionary }: IndexParts, page: RowBytes, at: number): number {
  const { bytes, bounds } = page;
  const start = bounds[at] as number;
  const end = bounds[at + 1] as number;
  const id = names.findBytes(bytes, start, end);
  if (id <= 0) return id;
  const isOwn = names.recordOf(id) === dictionary.findBytes(NAME_OWNER, bytes, start, end);
  return isOwn && names.mentions(id) > 0 ? id : -1;
}

function expiryAt(page: RowBytes, at: number): bigint {
  const start = page.bounds[at] as number;
  if (start < 0) return NEVER_US;
  const { buffer, byteOffset } = page.bytes;
  return new DataView(buffer, byteOffset + start, 8).getBigInt64(0);
}

/** Columns with a zero between them compare as the columns do: no column holds one. */
function keyOf(row: TupleRow): Buffer {
  const { namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation } = row;
  const columns = [namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation];
  return Buffer.from(columns.join('\0'));
}

function pageKey(page: RowBytes, row: number): Buffer {
  const parts: Uint8Array[] = [];
  for (let column = 0; column < KEY_COLUMNS; column++) {
    if (column > 0) parts.push(SEPARATOR);
    parts.push(columnOf(page, row, column));
  }
  return Buffer.concat(parts);
}

const SEPARATOR = new Uint8Array(1);

function columnOf({ bytes, bounds }: RowBytes, row: number, column: number): Uint8Array {
  const at = row * ROW_BOUNDS + column * 2;
  return bytes.subarray(bounds[at], bounds[at + 1]);
}

/** A row for the log: names of the model as they are, ids as the first 8 digits of their SHA-256. */
function exampleOf(page: RowBytes, row: number): string {
  const text = (column: number): string => Buffer.from(columnOf(page, row, column)).toString();
  const id = (column: number): string =>
    createHash('sha256')
      .update(columnOf(page, row, column))
      .digest('hex')
      .slice(0, 8);
  return `${text(0)}:${id(1)}#${text(2)}@${text(3)}:${id(4)}#${text(5)}`;
}
