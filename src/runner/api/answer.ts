import { createHash } from 'node:crypto';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';

const JSON_TYPE = 'application/json';
/** Characters of a digest that make an entity tag: 128 bits. */
const ETAG_LENGTH = 22;

/** What a handler answers. Headers are name, value, name, value… with lower-case names. */
export type Answer =
  | {
      readonly kind: 'whole';
      readonly status: number;
      readonly contentType: string;
      readonly body: string | Uint8Array;
      readonly headers: readonly string[];
      /** With its quotes; compared with If-None-Match. */
      readonly etag?: string | undefined;
    }
  | { readonly kind: 'empty'; readonly status: number; readonly headers: readonly string[] }
  | {
      /** A body that is made while it is sent; a failure before the first part is still an answer. */
      readonly kind: 'parts';
      readonly contentType: string;
      readonly parts: AsyncIterable<Uint8Array | string>;
      readonly headers: readonly string[];
      readonly etag?: string | undefined;
    }
  | {
      /** A body of a known length; `open` is not called for HEAD. */
      readonly kind: 'sized';
      readonly status: number;
      readonly contentType: string;
      readonly totalBytes: number;
      readonly open: () => AsyncIterable<Uint8Array>;
      readonly headers: readonly string[];
      readonly etag?: string | undefined;
    }
  | {
      /** The handler goes on with the exchange itself; HEAD gets the head alone. */
      readonly kind: 'stream';
      readonly contentType: string;
      readonly headers: readonly string[];
      readonly take: (exchange: HttpExchange, head: readonly string[]) => void;
    };

/** A value as JSON. `isTagged` adds an entity tag made from the body. */
export function jsonAnswer(
  status: number,
  value: unknown,
  headers: readonly string[] = [],
  isTagged = false,
): Answer {
  const body = JSON.stringify(value);
  const etag = isTagged ? etagOf(body) : undefined;
  return { kind: 'whole', status, contentType: JSON_TYPE, body, headers, etag };
}

export function emptyAnswer(status: number, headers: readonly string[] = []): Answer {
  return { kind: 'empty', status, headers };
}

/** A strong entity tag of `body` (RFC 9110 §8.8.3). */
export function etagOf(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, ETAG_LENGTH)}"`;
}

/** Does If-None-Match name `etag`? Weak comparison (RFC 9110 §13.1.2). */
export function isMatched(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const bare = etag.replace(/^W\//, '');
  return ifNoneMatch.split(',').some((entry) => entry.trim().replace(/^W\//, '') === bare);
}

/** What the writer has to know of the request. */
export type AnswerFrame = {
  readonly isHead: boolean;
  readonly ifNoneMatch: string;
  /** Headers of every answer. */
  readonly common: readonly string[];
};

/**
 * Writes an answer; resolves when it is complete or the client has gone.
 * Errors: rejects with what making the first part threw, the exchange then being still open; what
 * fails later drops the connection and rejects too.
 */
export async function writeAnswer(
  exchange: HttpExchange,
  answer: Answer,
  frame: AnswerFrame,
): Promise<void> {
  const etag = 'etag' in answer ? answer.etag : undefined;
  const tag = etag === undefined ? [] : ['etag', etag];
  const headers = [...frame.common, ...answer.headers, ...tag];
  if (etag !== undefined && frame.ifNoneMatch !== '' && isMatched(frame.ifNoneMatch, etag)) {
    exchange.sendHead(304, '', undefined, headers);
    return;
  }
  if (frame.isHead) return writeHead(exchange, answer, headers);
  switch (answer.kind) {
    case 'whole':
      exchange.send(answer.status, answer.contentType, answer.body, headers);
      return;
    case 'empty':
      exchange.sendHead(answer.status, '', undefined, headers);
      return;
    case 'stream':
      answer.take(exchange, headers);
      return;
    case 'parts':
      return writeParts(exchange, answer.contentType, answer.parts, headers);
    case 'sized':
      return writeSized(exchange, answer, headers);
  }
}

function writeHead(exchange: HttpExchange, answer: Answer, headers: readonly string[]): void {
  if (answer.kind === 'empty') return exchange.sendHead(answer.status, '', undefined, headers);
  const status = 'status' in answer ? answer.status : 200;
  let length: number | undefined;
  if (answer.kind === 'whole') length = Buffer.byteLength(answer.body);
  else if (answer.kind === 'sized') length = answer.totalBytes;
  exchange.sendHead(status, answer.contentType, length, headers);
}

async function writeParts(
  exchange: HttpExchange,
  contentType: string,
  parts: AsyncIterable<Uint8Array | string>,
  headers: readonly string[],
): Promise<void> {
  const iterator = parts[Symbol.asyncIterator]();
  try {
    let step = await iterator.next();
    exchange.begin(200, contentType, headers);
    for (; step.done !== true && !exchange.isEnded; step = await iterator.next()) {
      if (!exchange.write(step.value)) {
        await new Promise<void>((resolve) => exchange.onWritable(resolve));
      }
    }
    exchange.finish();
  } catch (error) {
    if (!exchange.isOpen) exchange.abort();
    throw error;
  } finally {
    await iterator.return?.();
  }
}

async function writeSized(
  exchange: HttpExchange,
  answer: Answer & { readonly kind: 'sized' },
  headers: readonly string[],
): Promise<void> {
  const { status, contentType, totalBytes } = answer;
  if (totalBytes === 0) return exchange.send(status, contentType, '', headers);
  const iterator = answer.open()[Symbol.asyncIterator]();
  try {
    let step = await iterator.next();
    exchange.beginSized(status, contentType, totalBytes, headers);
    for (; step.done !== true && !exchange.isEnded; step = await iterator.next()) {
      await exchange.writeSized(step.value);
    }
    // A file that was cut short while it was read: the client must not take it for whole.
    if (!exchange.isEnded) exchange.abort();
  } catch (error) {
    if (!exchange.isOpen) exchange.abort();
    throw error;
  } finally {
    await iterator.return?.();
  }
}
