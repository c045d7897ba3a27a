import { assert } from '../../shared/assert.ts';
import { utf8View } from '../../shared/text/utf8.ts';
import { LIST_LONG, LIST_PAGE_MASK, LIST_PAGE_SHIFT, type ListStore } from './list-store.ts';
import type { PageAllocator } from './page-allocator.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS, SegmentedHash, homeSlot } from './segmented-hash.ts';
import { hashPair, lastWordAt, wordAt } from './text-scratch.ts';

// Entries of a record: node, subject, expiry (low, high word), condition name, bytes of params, params.
export const QUALIFIER_NODE = 0;
export const QUALIFIER_SUBJECT = 1;
const EXPIRES_LOW = 2;
const EXPIRES_HIGH = 3;
export const QUALIFIER_CONDITION = 4;
export const QUALIFIER_PARAMS_BYTES = 5;
export const QUALIFIER_PARAMS = 6;

/** The largest int64, which means "never expires". */
export const NEVER_US = 0x7fff_ffff_ffff_ffffn;
const NEVER_HIGH = 0x7fff_ffff;

/** Expiry and condition of the edges that have any, beside the edges: a hash from (node, subject). */
export class QualifierStore {
  readonly table: SegmentedHash;
  readonly #lists: ListStore;

  /** `lists` holds the records. */
  constructor(lists: ListStore, allocator: PageAllocator) {
    this.#lists = lists;
    this.table = new SegmentedHash(allocator);
  }

  /** Stores what an edge carries; it must not carry anything yet. `params` is UTF-8. */
  add(
    node: number,
    subject: number,
    expiresLow: number,
    expiresHigh: number,
    condition: number,
    params: Uint8Array,
  ): void {
    let record = this.#lists.createPair(node, subject);
    record = this.#lists.append(record, expiresLow);
    record = this.#lists.append(record, expiresHigh);
    record = this.#lists.append(record, condition);
    record = this.#lists.append(record, params.length);
    for (let i = 0; i < params.length; i += 4) {
      const word =
        (params[i] as number) |
        ((params[i + 1] ?? 0) << 8) |
        ((params[i + 2] ?? 0) << 16) |
        ((params[i + 3] ?? 0) << 24);
      record = this.#lists.append(record, word);
    }
    this.table.insert(hashPair(node, subject), record);
  }

  /** Drops what an edge carries; returns the id of its condition name, which the caller releases. */
  remove(node: number, subject: number): number {
    const record = this.#mustFind(node, subject);
    const condition = this.#lists.get(record, QUALIFIER_CONDITION);
    this.table.remove(hashPair(node, subject), record);
    this.#lists.destroy(record);
    return condition;
  }

  /** Forgets everything; the lists are emptied beside it. */
  clear(): void {
    this.table.clear();
  }

  /** Expiry as int64, NEVER_US for none. */
  expiry(node: number, subject: number): bigint {
    const record = this.#mustFind(node, subject);
    const high = BigInt.asIntN(32, BigInt(this.#lists.get(record, EXPIRES_HIGH)));
    return (high << 32n) | BigInt(this.#lists.get(record, EXPIRES_LOW));
  }

  /** Expiry in microseconds since the epoch, or Infinity. Exact below 2^53. */
  expiresAtUs(node: number, subject: number): number {
    const record = this.#mustFind(node, subject);
    const high = this.#lists.get(record, EXPIRES_HIGH) | 0;
    const low = this.#lists.get(record, EXPIRES_LOW);
    if (high === NEVER_HIGH && low === 0xffff_ffff) return Infinity;
    return high * 2 ** 32 + low;
  }

  /** The expiry of an edge without a condition, like `expiresAtUs`; NaN of an edge with one. Hot: one lookup. */
  bareExpiresAtUs(node: number, subject: number): number {
    const record = this.#mustFind(node, subject);
    const page = this.#lists.pages[record >>> LIST_PAGE_SHIFT] as Uint32Array;
    const at = (record & LIST_PAGE_MASK) + 1;
    // Parameters so long that the record is cut into chunks are a condition's.
    if (((page[at - 1] as number) & LIST_LONG) !== 0 || page[at + QUALIFIER_CONDITION] !== 0) {
      return Number.NaN;
    }
    const high = (page[at + EXPIRES_HIGH] as number) | 0;
    const low = page[at + EXPIRES_LOW] as number;
    return high === NEVER_HIGH && low === 0xffff_ffff ? Infinity : high * 2 ** 32 + low;
  }

  /**
   * Copies expiry (low, high word), condition name, bytes of params and params of an edge to the start of `out`.
   * Returns the number of words, or -1 if `out` is too short. Hot.
   */
  read(node: number, subject: number, out: Uint32Array): number {
    const record = this.#mustFind(node, subject);
    const words = this.#lists.count(record) - EXPIRES_LOW;
    if (words > out.length) return -1;
    return this.#lists.copy(record, EXPIRES_LOW, out, 0, words);
  }

  /** Id of the condition's name, 0 for none. */
  condition(node: number, subject: number): number {
    return this.#lists.get(this.#mustFind(node, subject), QUALIFIER_CONDITION);
  }

  /** Text of the parameters, '' for none. */
  params(node: number, subject: number): string {
    const record = this.#mustFind(node, subject);
    const length = this.#lists.get(record, QUALIFIER_PARAMS_BYTES);
    if (length === 0) return '';
    const words = new Uint32Array((length + 3) >>> 2);
    this.#lists.copy(record, QUALIFIER_PARAMS, words, 0, words.length);
    return utf8View(words.buffer, 0, length).toString('utf8', 0, length);
  }

  /** Address of the record of an edge that carries something. Errors: an assertion when it has none. */
  recordOf(node: number, subject: number): number {
    return this.#mustFind(node, subject);
  }

  /** Whether an edge carries exactly this; arguments as of `add`. Errors: an assertion when it carries nothing. */
  matches(
    node: number,
    subject: number,
    expiresLow: number,
    expiresHigh: number,
    condition: number,
    params: Uint8Array,
  ): boolean {
    const record = this.#mustFind(node, subject);
    const lists = this.#lists;
    if (lists.get(record, EXPIRES_LOW) !== expiresLow >>> 0) return false;
    if (lists.get(record, EXPIRES_HIGH) !== expiresHigh >>> 0) return false;
    if (lists.get(record, QUALIFIER_CONDITION) !== condition) return false;
    if (lists.get(record, QUALIFIER_PARAMS_BYTES) !== params.length) return false;
    for (let i = 0; i < params.length; i += 4) {
      const word =
        i + 4 <= params.length ? wordAt(params, i) : lastWordAt(params, i, params.length);
      if (lists.get(record, QUALIFIER_PARAMS + (i >>> 2)) !== word >>> 0) return false;
    }
    return true;
  }

  #mustFind(node: number, subject: number): number {
    const hash = hashPair(node, subject);
    const segment = this.table.segmentOf(hash);
    const { pages } = this.#lists;
    const slots = segment[SEGMENT_SLOTS] as number;
    let slot = homeSlot(hash, slots);
    for (;;) {
      const at = SEGMENT_HEADER + slot * 2;
      const record = segment[at + 1] as number;
      assert(record !== 0, 'a qualified edge has a qualifier');
      if (((segment[at] as number) | 0) === hash) {
        const page = pages[record >>> LIST_PAGE_SHIFT] as Uint32Array;
        const first = (record & LIST_PAGE_MASK) + 1;
        if (((page[first - 1] as number) & LIST_LONG) !== 0) {
          if (this.#isLongOf(record, node, subject)) return record;
        } else if (
          page[first + QUALIFIER_NODE] === node &&
          page[first + QUALIFIER_SUBJECT] === subject
        ) {
          return record;
        }
      }
      slot += 1;
      if (slot === slots) slot = 0;
    }
  }

  /** Whether a record whose entries do not follow its header is that of the edge. */
  #isLongOf(record: number, node: number, subject: number): boolean {
    const lists = this.#lists;
    return (
      lists.get(record, QUALIFIER_NODE) === node && lists.get(record, QUALIFIER_SUBJECT) === subject
    );
  }
}
