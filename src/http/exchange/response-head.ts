import { STATUS_CODES } from 'node:http';
import type { RawResponse } from './raw-message.ts';

const LINES = new Map<number, string>();
for (const [code, text] of Object.entries(STATUS_CODES)) LINES.set(Number(code), `${code} ${text}`);
LINES.set(499, '499 Client Closed Request');

/** "404 Not Found" for 404; a code without a text stands alone. O(1). */
export function statusLine(statusCode: number): string {
  return LINES.get(statusCode) ?? `${statusCode} Unknown`;
}

/**
 * Writes status and headers; 200 is the status without a line of its own. `contentType` '' is none; `extra` is name, value,
 * name, value… Hot.
 */
export function writeHead(
  res: RawResponse,
  statusCode: number,
  contentType: string,
  extra: readonly string[],
): void {
  if (statusCode !== 200) res.writeStatus(statusLine(statusCode));
  if (contentType !== '') res.writeHeader('content-type', contentType);
  for (let i = 0; i + 1 < extra.length; i += 2) {
    res.writeHeader(extra[i] as string, extra[i + 1] as string);
  }
}
