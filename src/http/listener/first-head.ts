import { HEADER_BYTES_MAX } from '../http-limits.ts';

/** The first bytes of a connection of HTTP/1, by the listener that takes it. */
export type FirstHead =
  /** The head has not come whole. */
  | 'partial'
  /** One request that uWebSockets.js reads as every other reader does. */
  | 'plain'
  /** Any other head, well-formed or not: node:http reads it. */
  | 'other';

/** Number of fields above which uWebSockets.js answers 431 in its own form. */
const FIELDS_MAX = 90;
const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
/**
 * A request line in origin form, and fields with names (RFC 9112 §§3.2.1, 5). Each part ends where the next cannot begin, so
 * that matching is linear.
 */
const PLAIN_HEAD = new RegExp(
  `^${TOKEN} /[\\x21-\\x7e\\x80-\\xff]* HTTP/1\\.1\\r\\n(?:${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)+$`,
);
/** The beginning of a request line whose end has not come. */
const BEGINNING = new RegExp(`^(?:\\r(?:\\n|$))?(?:${TOKEN}(?: |$)|$)`);
/** A line that ends with LF alone, or a CR without LF: such a head is not waited for. */
const BARE_LINE_END = /(?:^|[^\r])\n|\r[^\n]/;
const LENGTH = /\r\ncontent-length:[\t ]*(\d{1,15})[\t ]*\r\n/gi;
const COUNTED = /\r\n(?:content-length|host):/gi;
const CODED = /\r\n(?:transfer-encoding|expect):/i;

/**
 * Classifies the first `count` bytes of a connection. Plain is one request of HTTP/1.1 in origin form with one Host. Its body
 * has a stated length, or there is none, and nothing comes behind it. O(count); makes a string of the head.
 */
export function firstHeadOf(bytes: Buffer, count: number): FirstHead {
  const text = bytes.toString('latin1', 0, Math.min(count, HEADER_BYTES_MAX));
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) {
    const isWaitedFor = BEGINNING.test(text) && !BARE_LINE_END.test(text);
    return isWaitedFor && count < HEADER_BYTES_MAX ? 'partial' : 'other';
  }
  const head = text.slice(0, end + 2);
  if (!PLAIN_HEAD.test(head) || CODED.test(head)) return 'other';
  let fields = -2;
  for (let at = 0; at >= 0; at = head.indexOf('\n', at + 1)) fields += 1;
  if (fields > FIELDS_MAX) return 'other';
  const counted = head.match(COUNTED)?.length ?? 0;
  const lengths = [...head.matchAll(LENGTH)];
  // One Host, and at most one length, which is a number.
  if (lengths.length > 1 || counted !== lengths.length + 1) return 'other';
  const hasHost = /\r\nhost:/i.test(head);
  const bodyBytes = Number(lengths[0]?.[1] ?? 0);
  return hasHost && count - end - 4 <= bodyBytes ? 'plain' : 'other';
}
