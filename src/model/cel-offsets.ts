import type { Timestamp } from '@bufbuild/protobuf/wkt';

/** Minutes east of Greenwich at which timestamps were written, those of UTC left out. */
const offsets = new WeakMap<Timestamp, number>();
const OFFSET = /([+-])([0-9]{2}):([0-9]{2})$/;

/** Notes the offset of the text that a timestamp was read from. Returns the timestamp. */
export function withOffsetOfText(at: Timestamp, text: string): Timestamp {
  const [, sign, hours, minutes] = OFFSET.exec(text) ?? [];
  const total = Number(hours ?? 0) * 60 + Number(minutes ?? 0);
  return withOffset(at, sign === '-' ? -total : total);
}

/** Notes the offset at which a timestamp stands, in minutes. Returns the timestamp. */
export function withOffset(at: Timestamp, minutes: number): Timestamp {
  if (minutes !== 0) offsets.set(at, minutes);
  return at;
}

/** The offset that a timestamp was written with, in minutes; 0 where it was UTC or was computed of a number. */
export function offsetOf(at: Timestamp): number {
  return offsets.get(at) ?? 0;
}
