import type { Message } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';

const encodedJson = new WeakMap<Message, Uint8Array>();

/** The JSON text of an answer that was encoded before, or undefined. O(1). */
export function encodedJsonOf(message: Message): Uint8Array | undefined {
  return encodedJson.get(message);
}

/**
 * Adds bytes that were encoded before to an answer, and returns it. With `isJson`, `parts` together are all of its JSON.
 * Otherwise they are binary fields in addition to its own, each of which begins with the tag of field 1 and a length.
 * O(parts); JSON in several parts is copied.
 */
export function withEncoded<M extends Message>(
  message: M,
  parts: readonly Uint8Array[],
  isJson: boolean,
): M {
  const [first] = parts;
  if (isJson) {
    const isOne = parts.length === 1 && first !== undefined;
    encodedJson.set(message, isOne ? first : Buffer.concat(parts));
    return message;
  }
  // The first byte is the tag, which the writer of unknown fields adds.
  message.$unknown = parts
    .filter((part) => part.length > 0)
    .map((part) => ({ no: 1, wireType: WireType.LengthDelimited, data: part.subarray(1) }));
  return message;
}
