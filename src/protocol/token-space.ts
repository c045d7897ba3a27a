import type { Revision } from './queries.ts';

/**
 * An answer whose consistency token is not written yet. A worker leaves space for it, since the gateway alone can make
 * one. Behind the body it puts the offset of that space and the revision that the token is of.
 *
 * Layout behind the body, little endian: offset of the space, 32 bits; epoch and revision, doubles.
 */
const EPOCH_AT = 4;
const REVISION_AT = 12;
/** Bytes behind the body. */
export const TOKEN_SPACE_BYTES = 20;
/** Characters of a consistency token, each of which is a byte. */
export const TOKEN_CHARACTERS = 40;

/** Writes the end of `answer`, whose body has space for a token at `tokenAt`. */
export function leaveTokenSpace(
  answer: Uint8Array,
  tokenAt: number,
  { epoch, revision }: Revision,
): void {
  const end = endOf(answer);
  end.setUint32(0, tokenAt, true);
  end.setFloat64(EPOCH_AT, epoch, true);
  end.setFloat64(REVISION_AT, revision, true);
}

/**
 * Fills the space in the body of `answer` with the token that `tokenOf` makes; returns the body, without a copy.
 * O(length of a token).
 */
export function fillTokenSpace(
  answer: Uint8Array,
  tokenOf: (revision: Revision) => string,
): Uint8Array {
  const end = endOf(answer);
  const tokenAt = end.getUint32(0, true);
  const epoch = end.getFloat64(EPOCH_AT, true);
  const token = tokenOf({ epoch, revision: end.getFloat64(REVISION_AT, true) });
  if (token.length !== TOKEN_CHARACTERS) throw new Error('a token that does not fit its space');
  for (let i = 0; i < TOKEN_CHARACTERS; i++) answer[tokenAt + i] = token.charCodeAt(i);
  return answer.subarray(0, answer.length - TOKEN_SPACE_BYTES);
}

function endOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset + length - TOKEN_SPACE_BYTES, TOKEN_SPACE_BYTES);
}
