/** What an exchange needs of the request. Usable until its handler returns. */
export interface RawRequest {
  /** It has no Host at all, as HTTP/1.0 may: `forEach` gives an empty one. */
  readonly isNameless: boolean;
  forEach(onHeader: (name: string, value: string) => void): void;
  getUrl(): string;
  getCaseSensitiveMethod(): string;
  getQuery(): string;
  getParameter(index: number): string | undefined;
}

/** What an exchange needs of the answer. */
export interface RawResponse {
  onAborted(handler: () => void): unknown;
  /** A chunk is the connection's again on return; a connection without a body gives an empty last one. */
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
  /** Whether there is room for more, and whether all of `totalBytes` has been given. */
  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean];
  /** The handler is notified how many bytes of the body have been taken. */
  onWritable(handler: (offset: number) => boolean): unknown;
  close(): unknown;
  getRemoteAddress(): string;
}
