import { STATUS_CODES } from 'node:http';

const LINES = new Map<number, string>();
for (const [code, text] of Object.entries(STATUS_CODES)) LINES.set(Number(code), `${code} ${text}`);
LINES.set(499, '499 Client Closed Request');

/** "404 Not Found" for 404; a code without a text stands alone. O(1). */
export function statusLine(statusCode: number): string {
  return LINES.get(statusCode) ?? `${statusCode} Unknown`;
}
