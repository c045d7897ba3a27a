import { assert, DEBUG_ASSERTIONS } from '../../shared/assert.ts';

/** Words by which rows are shifted to align with cache lines: large buffers start 16 bytes behind a page. */
const ALIGN_WORDS = 12;
/**
 * Slots that a row may have. With one, 75 % of the lists of ancestors were made again at each pass over 50,000 queries
 * at 1 M tuples; an item of a batch took 2,643 ns there, and takes 1,386.
 */
const WAYS = 4;
const SETS_FIRST = 16;

/** Words that every row begins with. The owner writes those behind. */
const ROW_ENTITY = 0;
const ROW_STATE = 1;
const ROW_GENERATION = 2;

/**
 * A cache of rows of a fixed number of words, by object and state, in one array. Set-associative: a row has one of
 * four slots side by side, and takes a free one or that of another in turn. (With one slot, a table of as many rows as
 * it has slots loses half of them to each other, for as long as both are read.) A table that is half full
 * doubles, up to a fixed size, and starts anew empty: its owner can make every row again.
 */
export class ObjectTable {
  /** The rows; word i of the row at `at` is `words[at + i]`. */
  words: Uint32Array;
  readonly #shift: number;
  readonly #bytesMax: number;
  #sets = SETS_FIRST;
  /** How far a hash is shifted to give a set. */
  #drop = 32 - Math.log2(SETS_FIRST);
  #generation = 1;
  #filled = 0;
  #turn = 0;

  /** A row has `2 ** shift` words. */
  constructor(shift: number, bytesMax: number) {
    this.#shift = shift;
    this.#bytesMax = bytesMax;
    this.words = this.#allocate();
  }

  /** Bytes of the table. */
  get bytes(): number {
    return this.words.byteLength;
  }

  /** Rows that fit into the table. */
  get capacity(): number {
    return this.#sets * WAYS;
  }

  /** Forgets everything. O(1), but for every 4 billionth time. */
  clear(): void {
    this.#filled = 0;
    this.#generation++;
    if (this.#generation > 0xffff_ffff) {
      this.#generation = 1;
      this.words.fill(0);
    }
  }

  /** Position of the first slot of a row, whether or not it is there; always inside `words`. Hot. */
  setOf(entity: number, state: number): number {
    const mixed = Math.imul(entity, 0x9e3779b1);
    const hash = Math.imul((mixed ^ (mixed >>> 15)) + state, 0x85ebca77);
    return (((hash >>> this.#drop) * WAYS) << this.#shift) + ALIGN_WORDS;
  }

  /** Position of the row of an object in a state, or -1. Hot. */
  rowOf(entity: number, state: number): number {
    const { words } = this;
    const generation = this.#generation;
    let at = this.setOf(entity, state);
    for (let way = 0; way < WAYS; way++) {
      if (
        words[at + ROW_ENTITY] === entity &&
        words[at + ROW_STATE] === state &&
        words[at + ROW_GENERATION] === generation
      ) {
        return at;
      }
      at += 1 << this.#shift;
    }
    return -1;
  }

  /** Assigns a slot to a row that `rowOf` does not know; may grow the table, which replaces `words`. */
  insert(entity: number, state: number): number {
    if (this.#filled * 2 >= this.capacity) this.#grow();
    const { words } = this;
    const set = this.setOf(entity, state);
    let way = 0;
    while (way < WAYS && words[this.#wayOf(set, way) + ROW_GENERATION] === this.#generation) way++;
    if (way < WAYS) this.#filled++;
    else way = this.#turn++ & (WAYS - 1);
    const at = this.#wayOf(set, way);
    if (DEBUG_ASSERTIONS) {
      assert(at >= 0 && at + (1 << this.#shift) <= words.length, 'a line lies in the table');
      assert(this.#filled <= this.capacity, 'no more lines than places');
      assert(this.rowOf(entity, state) < 0, 'a line has one place');
    }
    words[at + ROW_ENTITY] = entity;
    words[at + ROW_STATE] = state;
    words[at + ROW_GENERATION] = this.#generation;
    return at;
  }

  /** Forgets the row of an object in a state, if there is one. */
  drop(entity: number, state: number): void {
    const at = this.rowOf(entity, state);
    if (at >= 0) this.forget(at);
  }

  /** Marks the present row at `at` stale: the next read makes it anew. Its words stay until a row is added. */
  forget(at: number): void {
    this.words[at + ROW_GENERATION] = 0;
    this.#filled--;
  }

  #wayOf(set: number, way: number): number {
    return set + (way << this.#shift);
  }

  #grow(): void {
    if ((this.#sets * 2 * WAYS * 4) << this.#shift > this.#bytesMax) return;
    this.#sets *= 2;
    this.#drop -= 1;
    this.#filled = 0;
    this.words = this.#allocate();
  }

  #allocate(): Uint32Array {
    return new Uint32Array(((this.#sets * WAYS) << this.#shift) + ALIGN_WORDS);
  }
}
