import { STATUS_CODES } from 'node:http';

/** A request as an exchange needs it. Usable until its handler returns. */
export interface RawRequest {
  /** Whether the request has no Host, as HTTP/1.0 allows: `forEach` then passes an empty one. */
  readonly isNameless: boolean;
  forEach(onHeader: (name: string, value: string) => void): void;
  getUrl(): string;
  getCaseSensitiveMethod(): string;
  getQuery(): string;
  getParameter(index: number): string | undefined;
}

/** An answer as an exchange needs it. */
export interface RawResponse {
  onAborted(handler: () => void): unknown;
  /** A chunk belongs to the connection again on return; for a request without a body the last one is empty. */
  onData(handler: (chunk: Uint8Array, isLast: boolean) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  cork(handler: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  /** False when what was written waits for the client. */
  write(chunk: string | Uint8Array): boolean;
  end(body?: string | Uint8Array, closeConnection?: boolean): unknown;
  endWithoutBody(contentLength?: number, closeConnection?: boolean): unknown;
  /** Returns whether more may be written, and whether all of `totalBytes` has been written. */
  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean];
  /** Sets the handler, which gets the number of bytes of the body that have been taken. */
  onWritable(handler: (offset: number) => boolean): unknown;
  close(): unknown;
  getRemoteAddress(): string;
}

const LINES = new Map<number, string>();
for (const [code, text] of Object.entries(STATUS_CODES)) LINES.set(Number(code), `${code} ${text}`);
LINES.set(499, '499 Client Closed Request');

/** The status line of a code: "404 Not Found" for 404, with the text "Unknown" for a code that has none. O(1). */
export function statusLine(statusCode: number): string {
  return LINES.get(statusCode) ?? `${statusCode} Unknown`;
}

/**
 * Writes status and headers; 200 needs no status line. `contentType` '' writes none; `extra` is name, value, name, value…
 * Hot.
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

/** The body of the answer to a message that is refused for its form: JSON like that of other errors. */
export function refusedMessageBody(problem: string): string {
  return `{"code":"invalid_argument","message":${JSON.stringify(problem)},"details":[]}`;
}
