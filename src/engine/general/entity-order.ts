import { ENTITY_ID_BYTES_MAX, type TupleReader } from '../../model/tuple-reader.ts';
import { SlicedSort } from './sliced-sort.ts';

/** Entities whose keys are prepared, or that are put in order, in one step. */
const ENTITIES_PER_STEP = 256;
/** Sorted at once by the engine's own sort of numbers: 0.2 ms. */
const RUN_LENGTH = 4096;
/** A key and the position of its entity are one number: 32 and 21 bits. */
const POSITIONS = 2 ** 21;
/** Entities with equal keys that are compared by insertion; more are compared like lists without keys. */
const EQUALS_MAX = 32;

const first = new Uint8Array(ENTITY_ID_BYTES_MAX);
const other = new Uint8Array(ENTITY_ID_BYTES_MAX);

/**
 * Puts entities in the UTF-8 byte order of their ids, in steps. The four bytes behind the common prefix of all ids are
 * prepared as numbers, which are sorted without reading any id again; entities with equal keys are compared by their
 * ids. Where the keys differ too little, or for lists of more than two million, all are.
 */
export class EntityOrder {
  readonly #reader: TupleReader;
  #values: Uint32Array;
  #keys: Float64Array;
  #target: Float64Array | null = null;
  #sorted: Uint32Array | null = null;
  #phase: 'prefix' | 'keys' | 'runs' | 'merge' | 'equals' | 'compare' | 'done';
  #next = 0;
  #prefix = 0;
  #width = RUN_LENGTH;
  #sort: SlicedSort | null = null;

  /** `entities` may be written to. */
  constructor(reader: TupleReader, entities: Uint32Array) {
    this.#reader = reader;
    this.#values = entities;
    this.#phase = entities.length < 2 ? 'done' : 'prefix';
    const isTooLong = entities.length > POSITIONS;
    this.#keys = new Float64Array(isTooLong ? 0 : entities.length);
    if (isTooLong) this.#compareAll();
    else if (entities.length > 1)
      this.#prefix = reader.readEntityId(entities[0] as number, first, 0);
  }

  /** In order once `step` has returned false. */
  get values(): Uint32Array {
    return this.#values;
  }

  /** A bounded piece of work; false when all are in order. */
  step(): boolean {
    switch (this.#phase) {
      case 'prefix':
        this.#stepPrefix();
        return true;
      case 'keys':
        this.#stepKeys();
        return true;
      case 'runs':
        this.#stepRuns();
        return true;
      case 'merge':
        this.#stepMerge();
        return true;
      case 'equals':
        this.#stepEquals();
        return true;
      case 'compare':
        return this.#stepCompare();
      case 'done':
        return false;
    }
  }

  #begin(phase: 'keys' | 'runs' | 'merge' | 'equals' | 'done'): void {
    this.#phase = phase;
    this.#next = 0;
  }

  /** Bytes that all ids begin with. */
  #stepPrefix(): void {
    const end = Math.min(this.#values.length, this.#next + ENTITIES_PER_STEP);
    for (; this.#next < end; this.#next++) {
      const length = this.#reader.readEntityId(this.#values[this.#next] as number, other, 0);
      let same = 0;
      while (same < this.#prefix && same < length && first[same] === other[same]) same += 1;
      this.#prefix = same;
    }
    if (end === this.#values.length || this.#prefix === 0) this.#begin('keys');
  }

  #stepKeys(): void {
    const end = Math.min(this.#values.length, this.#next + ENTITIES_PER_STEP);
    const at = this.#prefix;
    for (; this.#next < end; this.#next++) {
      const length = this.#reader.readEntityId(this.#values[this.#next] as number, other, 0);
      // A shorter id comes first: missing bytes count as zero.
      let key = 0;
      for (let i = at; i < at + 4; i++) key = key * 256 + (i < length ? (other[i] as number) : 0);
      this.#keys[this.#next] = key * POSITIONS + this.#next;
    }
    if (end === this.#values.length) this.#begin('runs');
  }

  #stepRuns(): void {
    const keys = this.#keys;
    const end = Math.min(keys.length, this.#next + RUN_LENGTH);
    keys.subarray(this.#next, end).sort();
    this.#next = end;
    if (end === keys.length) this.#begin(keys.length > RUN_LENGTH ? 'merge' : 'equals');
  }

  /** Merges two neighbours, which may be long: numbers alone, 3 ns each. */
  #stepMerge(): void {
    const keys = this.#keys;
    this.#target ??= new Float64Array(keys.length);
    const target = this.#target;
    const middle = Math.min(keys.length, this.#next + this.#width);
    const end = Math.min(keys.length, this.#next + 2 * this.#width);
    let left = this.#next;
    let right = middle;
    for (let out = this.#next; out < end; out++) {
      const takesLeft =
        right >= end || (left < middle && (keys[left] as number) < (keys[right] as number));
      target[out] = (takesLeft ? keys[left++] : keys[right++]) as number;
    }
    this.#next = end;
    if (end < keys.length) return;
    this.#keys = target;
    this.#target = keys;
    this.#width *= 2;
    this.#begin(this.#width >= keys.length ? 'equals' : 'merge');
  }

  /** Puts the entities where their keys are, and those of equal keys in order among themselves. */
  #stepEquals(): void {
    const keys = this.#keys;
    if (this.#next === 0 && !this.#canDecide()) return this.#compareAll();
    this.#sorted ??= new Uint32Array(keys.length);
    const sorted = this.#sorted;
    const pieceEnd = Math.min(keys.length, this.#next + RUN_LENGTH);
    let start = this.#next;
    while (start < pieceEnd) {
      const key = Math.floor((keys[start] as number) / POSITIONS);
      let end = start;
      for (; end < keys.length; end++) {
        const both = keys[end] as number;
        if (Math.floor(both / POSITIONS) !== key) break;
        sorted[end] = this.#values[both - key * POSITIONS] as number;
      }
      if (end - start > 1) this.#insertSort(sorted, start, end);
      start = end;
    }
    this.#next = start;
    if (start < keys.length) return;
    this.#values = sorted;
    this.#begin('done');
  }

  /** Whether no more than a few have the same key. */
  #canDecide(): boolean {
    const keys = this.#keys;
    for (let i = EQUALS_MAX; i < keys.length; i++) {
      const key = Math.floor((keys[i] as number) / POSITIONS);
      if (Math.floor((keys[i - EQUALS_MAX] as number) / POSITIONS) === key) return false;
    }
    return true;
  }

  #insertSort(values: Uint32Array, start: number, end: number): void {
    for (let i = start + 1; i < end; i++) {
      const value = values[i] as number;
      let to = i;
      for (; to > start; to--) {
        const before = values[to - 1] as number;
        if (this.#reader.compareEntityIds(before, value) <= 0) break;
        values[to] = before;
      }
      values[to] = value;
    }
  }

  #compareAll(): void {
    this.#phase = 'compare';
    this.#sort = new SlicedSort(this.#values, (a, b) => this.#reader.compareEntityIds(a, b));
  }

  #stepCompare(): boolean {
    const sort = this.#sort as SlicedSort;
    if (sort.step()) return true;
    this.#values = sort.values;
    this.#phase = 'done';
    return false;
  }
}
