import type { HttpExchange } from '../../exchange/http-exchange.ts';
import type { UnreadAnswers } from '../../exchange/unread-answers.ts';
import { REQUEST_ID_HEADER } from '../../request-id.ts';
import type { UniversalResponse } from '../protocol/universal.ts';
import { BytesBody } from './adapter-body.ts';

/** Written at a time: each that is taken is progress. */
const PART_BYTES = 16_384;

/**
 * Writes a universal response to an HTTP/1.1 exchange. `isWhole` gathers the parts of the body and
 * sends them at once with a length, as suits every unary call; else each part goes out as it comes
 * and a slow client holds the handler back, and is held in `unread` meanwhile. Never throws: a broken body drops the connection.
 */
export async function respondToExchange(
  exchange: HttpExchange,
  response: UniversalResponse,
  requestId: string,
  isWhole: boolean,
  unread?: UnreadAnswers,
): Promise<void> {
  const { body } = response;
  const extra = extraHeaders(response, requestId);
  if (body === undefined) return exchange.sendEmpty(response.status, extra);
  const contentType = response.header?.get('content-type') ?? '';
  if (body instanceof BytesBody) {
    return exchange.send(response.status, contentType, body.bytes, extra);
  }
  const iterator = body[Symbol.asyncIterator]();
  try {
    if (isWhole) {
      const bytes = await gather(iterator);
      return exchange.send(response.status, contentType, bytes, extra);
    }
    let step = await iterator.next();
    // Handlers may set headers until their first message: begin only now.
    exchange.begin(response.status, contentType, extra);
    for (; step.done !== true; step = await iterator.next()) {
      await writePart(exchange, step.value, unread);
      if (exchange.isEnded) return;
    }
    exchange.finish();
  } catch {
    // The protocol handlers turn failures into messages; what still throws is a cut connection.
    exchange.abort();
  } finally {
    iterator.return?.().catch(ignoreEnded);
  }
}

async function writePart(
  exchange: HttpExchange,
  bytes: Uint8Array,
  unread: UnreadAnswers | undefined,
): Promise<void> {
  for (let from = 0; from < bytes.length && !exchange.isEnded; from += PART_BYTES) {
    if (exchange.write(bytes.subarray(from, from + PART_BYTES))) continue;
    const held = { unreadBytes: bytes.length, progress: from, drop: () => exchange.abort() };
    unread?.add(held);
    await new Promise<void>((resolve) => exchange.onWritable(resolve));
    unread?.remove(held);
  }
}

async function gather(iterator: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
    parts.push(step.value);
  }
  const [first] = parts;
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
}

function extraHeaders(response: UniversalResponse, requestId: string): string[] {
  const extra = [REQUEST_ID_HEADER, requestId];
  response.header?.forEach((value, name) => {
    // The connection writes the length itself.
    if (name !== 'content-type' && name !== 'content-length') extra.push(name, value);
  });
  if (response.status === 405) extra.push('allow', 'POST');
  return extra;
}

function ignoreEnded(): void {
  // The iteration is over either way.
}
