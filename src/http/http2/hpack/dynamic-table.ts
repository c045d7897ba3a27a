import { FIELD_OVERHEAD_BYTES, HeaderField } from './header-field.ts';

/** Limit of the table of every peer, in bytes of our memory. */
export const TABLE_BYTES_MAX = 4_096;
/** Bytes and slots at first, doubled as they are needed: powers of two. */
const SPACE_BYTES_MIN = 256;
const SLOTS_MIN = 16;
/** Numbers of a slot: where the field begins in the ring of bytes, the length of its name, and that of its value. */
const SLOT_NUMBERS = 3;
/** Limit of fields kept as objects: bytes of their names and values, each with the overhead of its objects. */
const MADE_BYTES_MAX = 4_096;
const MADE_OVERHEAD_BYTES = 96;

/** Shorter texts are copied faster character by character than by a call of `write`. */
const SHORT_LENGTH_MAX = 64;

const NO_BYTES = Buffer.alloc(0);
const NO_NUMBERS = new Uint16Array();
/** Memory shared by the thread for texts that wrap around the end of a ring. */
const scratch = Buffer.allocUnsafeSlow(TABLE_BYTES_MAX);

/**
 * The dynamic table of one connection (RFC 7541 section 2.3.2), as bytes in a ring outside of the heap. Fields that come and
 * are evicted thus leave nothing to collect. A field becomes an object when it is looked up. Some are kept then, so that one
 * that is looked up often stays the same object.
 */
export class DynamicTable {
  #bytes: Buffer = NO_BYTES;
  /** Position of the next field. */
  #end = 0;
  #usedBytes = 0;
  /** A ring of slots; the newest field has that at `#newest`. */
  #slots: Uint16Array = NO_NUMBERS;
  #slotMask = -1;
  #newest = -1;
  #count = 0;
  /** Fields that were looked up, by slot; null while there are none. */
  #made: (HeaderField | undefined)[] | null = null;
  #madeBytes = 0;
  /**
   * The newest field's name, where it is short: a field that changes with each request mostly takes its name from the one
   * before.
   */
  #newestName = '';
  #size = 0;
  #sizeMax = TABLE_BYTES_MAX;

  /** Bytes as RFC 7541 counts them. */
  get size(): number {
    return this.#size;
  }

  /**
   * Hot. Returns the field that came `age` fields before the newest; null where there is none. It is the same object as
   * before, if it was kept.
   */
  field(age: number): HeaderField | null {
    if (age >= this.#count) return null;
    const slot = (this.#newest - age) & this.#slotMask;
    return this.#made?.[slot] ?? this.#make(slot);
  }

  /** Returns only the name of that field; null where there is none. */
  name(age: number): string | null {
    if (age >= this.#count) return null;
    const slot = (this.#newest - age) & this.#slotMask;
    const made = this.#made?.[slot];
    if (made !== undefined) return made.name;
    if (age === 0 && this.#newestName !== '') return this.#newestName;
    return this.#text(this.#numberOf(slot, 0), this.#numberOf(slot, 1));
  }

  #make(slot: number): HeaderField {
    const from = this.#numberOf(slot, 0);
    const nameLength = this.#numberOf(slot, 1);
    const value = this.#text(from + nameLength, this.#numberOf(slot, 2));
    const field = new HeaderField(this.#text(from, nameLength), value);
    const bytes = madeBytesOf(field);
    if (this.#madeBytes + bytes > MADE_BYTES_MAX) return field;
    this.#madeBytes += bytes;
    this.#made ??= [];
    this.#made[slot] = field;
    return field;
  }

  /**
   * Adds the newest field, whose texts have a character for each byte. Evicts fields that it leaves no space for. A field
   * that is larger than the table empties it.
   */
  add(name: string, value: string): void {
    const length = name.length + value.length;
    const size = length + FIELD_OVERHEAD_BYTES;
    this.#evictTo(this.#sizeMax - size);
    if (size > this.#sizeMax) return;
    if (this.#count > this.#slotMask) this.#moreSlots();
    if (this.#usedBytes + length > this.#bytes.length) this.#moreBytes(this.#usedBytes + length);
    this.#newest = (this.#newest + 1) & this.#slotMask;
    const at = this.#newest * SLOT_NUMBERS;
    this.#slots[at] = this.#end;
    this.#slots[at + 1] = name.length;
    this.#slots[at + 2] = value.length;
    this.#newestName = name.length <= SHORT_LENGTH_MAX ? name : '';
    this.#put(name);
    this.#put(value);
    this.#count += 1;
    this.#usedBytes += length;
    this.#size += size;
  }

  /** Sets the size of the table as the peer states it; `sizeMax` is at most `TABLE_BYTES_MAX`. */
  resize(sizeMax: number): void {
    this.#sizeMax = sizeMax;
    this.#evictTo(sizeMax);
  }

  /** Drops caches that only save work. */
  forget(): void {
    this.#made = null;
    this.#madeBytes = 0;
  }

  #evictTo(size: number): void {
    while (this.#count > 0 && this.#size > size) {
      this.#count -= 1;
      const slot = (this.#newest - this.#count) & this.#slotMask;
      const length = this.#numberOf(slot, 1) + this.#numberOf(slot, 2);
      this.#usedBytes -= length;
      this.#size -= length + FIELD_OVERHEAD_BYTES;
      const made = this.#made?.[slot];
      if (this.#made === null || made === undefined) continue;
      this.#madeBytes -= madeBytesOf(made);
      this.#made[slot] = undefined;
    }
  }

  #numberOf(slot: number, which: number): number {
    return this.#slots[slot * SLOT_NUMBERS + which] as number;
  }

  #put(text: string): void {
    const bytes = this.#bytes;
    const at = this.#end;
    const capacity = bytes.length - at;
    if (text.length <= capacity && text.length <= SHORT_LENGTH_MAX) {
      for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
    } else if (text.length <= capacity) bytes.write(text, at, 'latin1');
    else {
      bytes.write(text.slice(0, capacity), at, 'latin1');
      bytes.write(text.slice(capacity), 0, 'latin1');
    }
    this.#end = (at + text.length) & (bytes.length - 1);
  }

  #text(from: number, length: number): string {
    const bytes = this.#bytes;
    const at = from & (bytes.length - 1);
    if (at + length <= bytes.length) return bytes.toString('latin1', at, at + length);
    const first = bytes.copy(scratch, 0, at);
    bytes.copy(scratch, first, 0, length - first);
    return scratch.toString('latin1', 0, length);
  }

  /** Lays the bytes of all fields into a larger ring, the oldest first. */
  #moreBytes(needed: number): void {
    let space = Math.max(SPACE_BYTES_MIN, this.#bytes.length * 2);
    while (space < needed) space *= 2;
    const before = this.#bytes;
    const bytes = Buffer.allocUnsafeSlow(space);
    const from = (this.#end - this.#usedBytes) & (before.length - 1);
    const first = before.copy(bytes, 0, from, Math.min(before.length, from + this.#usedBytes));
    before.copy(bytes, first, 0, this.#usedBytes - first);
    this.#bytes = bytes;
    this.#end = this.#usedBytes;
    for (let i = this.#count - 1, at = 0; i >= 0; i--) {
      const slot = (this.#newest - i) & this.#slotMask;
      this.#slots[slot * SLOT_NUMBERS] = at;
      at += this.#numberOf(slot, 1) + this.#numberOf(slot, 2);
    }
  }

  /** Lays the slots of all fields into a larger ring, the oldest first. */
  #moreSlots(): void {
    const slots = new Uint16Array(Math.max(SLOTS_MIN, this.#count * 2) * SLOT_NUMBERS);
    const made: (HeaderField | undefined)[] | null = this.#made === null ? null : [];
    for (let i = 0; i < this.#count; i++) {
      const slot = (this.#newest - this.#count + 1 + i) & this.#slotMask;
      for (let n = 0; n < SLOT_NUMBERS; n++) slots[i * SLOT_NUMBERS + n] = this.#numberOf(slot, n);
      const field = this.#made?.[slot];
      if (made !== null && field !== undefined) made[i] = field;
    }
    this.#slots = slots;
    this.#slotMask = slots.length / SLOT_NUMBERS - 1;
    this.#newest = this.#count - 1;
    this.#made = made;
  }
}

function madeBytesOf({ name, value }: HeaderField): number {
  return name.length + value.length + MADE_OVERHEAD_BYTES;
}
