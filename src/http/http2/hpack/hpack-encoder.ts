import type { OutgoingHttpHeaders } from 'node:http2';
import { STATIC_TABLE } from './static-table.ts';

/** Bytes for the head of an answer; a longer one cannot be sent. */
export const HEAD_BYTES_MAX = 65_536;

/**
 * Size update to a dynamic table of no bytes. It is sent once, so that no later setting of the peer asks us for more (RFC
 * 7541 section 4.2).
 */
const NO_TABLE = 0x20;
const LITERAL = 0x00;
const LITERAL_NAME_BITS = 4;
const STRING_BITS = 7;
/** Limits of names and values that are kept as bytes, since there are few of them. */
const KEPT_NAMES_MAX = 256;
const KEPT_VALUES_MAX = 32;
const KEPT_VALUE_CHARACTERS_MAX = 64;
const KEPT_VALUES_OF = new Set([
  'allow',
  'content-encoding',
  'content-type',
  'grpc-accept-encoding',
  'grpc-encoding',
  'grpc-status',
  'accept-encoding',
  'accept-post',
  'trailer',
  'vary',
]);

/** Values that can be sent: other characters could end a field, or are invalid in one (RFC 9113 section 8.2.1). */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;

const indexOfName = new Map<string, number>();
const indexOfStatus = new Map<string, number>();
for (const [i, [name, value]] of STATIC_TABLE.entries()) {
  if (!indexOfName.has(name)) indexOfName.set(name, i + 1);
  if (name === ':status') indexOfStatus.set(value, i + 1);
}

/** An encoded name, which begins a literal field that is not indexed, and whole fields of that name. */
type KeptName = { readonly prefix: Buffer; readonly fields: Map<string, Buffer> | null };
const keptNames = new Map<string, KeptName>();

/** Memory shared by the thread: a head is encoded and consumed without a pause. */
const out = Buffer.allocUnsafeSlow(HEAD_BYTES_MAX);
let at = 0;

/**
 * Hot. Encodes the head of an answer, with the static table and literals alone. With `isTrailer` it encodes trailers, which
 * have no `:status`. The bytes are valid until the next call.
 * Errors: TypeError for a name or value that cannot be sent, RangeError for a head beyond `HEAD_BYTES_MAX`.
 */
export function encodeHead(
  head: OutgoingHttpHeaders,
  isTrailer: boolean,
  isFirst: boolean,
): Uint8Array {
  at = 0;
  if (isFirst) {
    out[0] = NO_TABLE;
    at = 1;
  }
  if (!isTrailer) putStatus(head[':status'] ?? 200);
  for (const name in head) {
    const value = head[name];
    if (name === ':status' || value === undefined) continue;
    if (typeof value === 'string') putField(name, value);
    else if (typeof value === 'number') putField(name, String(value));
    else for (const one of value) putField(name, one);
  }
  if (!isTrailer && head['date'] === undefined) putField('date', dateNow());
  return out.subarray(0, at);
}

function putStatus(status: number | string | string[]): void {
  const text = String(status);
  const index = indexOfStatus.get(text);
  if (index !== undefined) {
    out[at] = 0x80 | index;
    at += 1;
    return;
  }
  if (!/^[1-5][0-9][0-9]$/.test(text)) throw new TypeError(`status ${text} cannot be sent`);
  putBytes(keptName(':status').prefix);
  putText(text);
}

function putField(name: string, value: string): void {
  const kept = keptNames.get(name) ?? keptName(name);
  const { fields } = kept;
  const field = fields?.get(value);
  if (field !== undefined) return putBytes(field);
  if (!SENDABLE.test(value)) throw new TypeError(`the value of ${name} cannot be sent`);
  const from = at;
  putBytes(kept.prefix);
  putText(value);
  if (
    fields !== null &&
    fields.size < KEPT_VALUES_MAX &&
    value.length <= KEPT_VALUE_CHARACTERS_MAX
  ) {
    fields.set(value, Buffer.from(out.subarray(from, at)));
  }
}

function keptName(name: string): KeptName {
  const index = indexOfName.get(name);
  if (index === undefined && !NAME.test(name)) throw new TypeError(`${name} cannot be sent`);
  const bytes: number[] = [];
  if (index === undefined) bytes.push(LITERAL, ...integer(name.length, STRING_BITS));
  else bytes.push(...integer(index, LITERAL_NAME_BITS));
  const head = Buffer.from(bytes);
  const prefix = index === undefined ? Buffer.concat([head, Buffer.from(name, 'latin1')]) : head;
  const kept = { prefix, fields: KEPT_VALUES_OF.has(name) ? new Map<string, Buffer>() : null };
  if (keptNames.size < KEPT_NAMES_MAX) keptNames.set(name, kept);
  return kept;
}

function putBytes(bytes: Uint8Array): void {
  if (at + bytes.length > HEAD_BYTES_MAX) throw new RangeError('the head of an answer is too long');
  for (let i = 0; i < bytes.length; i++) out[at + i] = bytes[i] as number;
  at += bytes.length;
}

function putText(text: string): void {
  const { length } = text;
  if (length < 0x7f) {
    if (at + 1 + length > HEAD_BYTES_MAX) {
      throw new RangeError('the head of an answer is too long');
    }
    out[at] = length;
    at += 1;
  } else putBytes(Uint8Array.from(integer(length, STRING_BITS)));
  if (at + length > HEAD_BYTES_MAX) throw new RangeError('the head of an answer is too long');
  at += out.write(text, at, length, 'latin1');
}

/** Encodes an integer (RFC 7541 section 5.1), with zeros in the bits before it. */
function integer(value: number, bits: number): number[] {
  const most = (1 << bits) - 1;
  if (value < most) return [value];
  const bytes = [most];
  let rest = value - most;
  while (rest >= 0x80) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}

let dateText = '';
let dateUntilMs = 0;

/** Now, as RFC 9110 section 5.6.7 writes it; made once a second. */
function dateNow(): string {
  const nowMs = Date.now();
  if (nowMs >= dateUntilMs || nowMs < dateUntilMs - 1_000) {
    dateText = new Date(nowMs).toUTCString();
    dateUntilMs = nowMs - (nowMs % 1_000) + 1_000;
  }
  return dateText;
}
