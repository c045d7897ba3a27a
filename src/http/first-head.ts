import { HEAD_PARTIAL, Http1Head } from './http1-head.ts';

const head = new Http1Head();

/**
 * Do the `count` bytes that a connection begins with hold a whole head of HTTP/1, or something that is none? False asks for
 * more bytes. O(count).
 */
export function isFirstHeadWhole(bytes: Buffer, count: number): boolean {
  return head.read(bytes, 0, count) !== HEAD_PARTIAL;
}
