/** Classes of the first bytes of a connection that may begin TLS. */
export type FirstHello =
  /** The bytes do not begin TLS. */
  | 'none'
  /** The ClientHello has not come whole. */
  | 'partial'
  /** It offers HTTP/2 by ALPN. */
  | 'http2'
  /** It offers other protocols or none, or is cut into several records, or malformed. */
  | 'other';

const HANDSHAKE_RECORD = 0x16;
const VERSION_MAJOR = 3;
const RECORD_HEAD_BYTES = 5;
const CLIENT_HELLO = 1;
/** Bytes of the parts whose length never changes: the handshake's head, the version and the random bytes. */
const FIXED_BYTES = 4 + 2 + 32;
const ALPN = 16;
const H2 = [0x68, 0x32];

/**
 * Classifies the first `count` bytes of a connection, of which no more will arrive than `bytes` holds. Reads the record and
 * the message of RFC 8446 §§4.1.2 and 5.1, and ALPN of RFC 7301 §3.1. O(count); keeps nothing.
 */
export function firstHelloOf(bytes: Uint8Array, count: number): FirstHello {
  if (count < 1 || bytes[0] !== HANDSHAKE_RECORD) return 'none';
  if (count > 1 && bytes[1] !== VERSION_MAJOR) return 'none';
  if (count < RECORD_HEAD_BYTES) return 'partial';
  const end = RECORD_HEAD_BYTES + uint16(bytes, 3);
  if (end > bytes.length) return 'other';
  if (end > count) return 'partial';
  return bytes[RECORD_HEAD_BYTES] === CLIENT_HELLO && offersHttp2(bytes, end) ? 'http2' : 'other';
}

function offersHttp2(bytes: Uint8Array, end: number): boolean {
  let at = RECORD_HEAD_BYTES + FIXED_BYTES;
  at += 1 + (bytes[at] ?? 0); // the session
  at += 2 + uint16(bytes, at); // suites of ciphers
  at += 1 + (bytes[at] ?? 0); // compression
  const last = Math.min(end, at + 2 + uint16(bytes, at)); // of all extensions
  at += 2;
  while (at + 4 <= last) {
    const type = uint16(bytes, at);
    const from = at + 4;
    at = from + uint16(bytes, at + 2);
    if (type === ALPN) return at <= last && namesHttp2(bytes, from + 2, at);
  }
  return false;
}

/** Whether HTTP/2 is among the names of protocols, each of which follows its length. */
function namesHttp2(bytes: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at += 1 + (bytes[at] ?? 0)) {
    const isAll = bytes[at] === H2.length && at + H2.length < end;
    if (isAll && H2.every((byte, i) => bytes[at + 1 + i] === byte)) return true;
  }
  return false;
}

function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
