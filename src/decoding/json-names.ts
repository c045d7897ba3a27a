import type { JsonTokens } from './json-tokens.ts';

type Named<T> = { readonly bytes: Uint8Array; readonly value: T };

/** Names of members, found by their bytes, with the value of each. */
export class JsonNames<T> {
  readonly #byLength: (Named<T>[] | undefined)[] = [];

  constructor(names: Iterable<readonly [name: string, value: T]>) {
    for (const [name, value] of names) {
      const bytes = Buffer.from(name);
      (this.#byLength[bytes.length] ??= []).push({ bytes, value });
    }
  }

  /**
   * Hot. The value for the name in the bytes `from` to `to`, or undefined. O(length × names of this
   * length).
   */
  lookUp(bytes: Uint8Array, from: number, to: number): T | undefined {
    const entries = this.#byLength[to - from];
    if (entries === undefined) return undefined;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Named<T>; // below length
      let at = from;
      for (let k = 0; at < to && entry.bytes[k] === bytes[at]; k++) at += 1;
      if (at === to) return entry.value;
    }
    return undefined;
  }

  /**
   * The value for the name that was read last, escaped or not. undefined: unknown name; false: not
   * JSON.
   */
  read(tokens: JsonTokens): T | undefined | false {
    const { bytes, from, to } = tokens;
    if (!tokens.isEscaped) return this.lookUp(bytes, from, to);
    const text = tokens.text(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    if (text === undefined) return false;
    const name = Buffer.from(text);
    return this.lookUp(name, 0, name.length);
  }
}

/**
 * Field names in both spellings of the JSON mapping of protobuf: as in the proto, and in lower
 * camel case.
 */
export function fieldNames<T>(fields: Iterable<readonly [name: string, value: T]>): JsonNames<T> {
  const names = new Map<string, T>();
  for (const [name, value] of fields) {
    names.set(name, value);
    names.set(
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    );
  }
  return new JsonNames(names);
}
