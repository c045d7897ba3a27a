import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { encodeList, encodePages, SLICED_ITEMS_MIN } from './list-encoder.ts';

/** The message that holds these items and nothing else. */
type MessageOf<Desc extends DescMessage, Item> = (items: readonly Item[]) => MessageInitShape<Desc>;

/** Short lists as they are, long ones encoded in slices (list-encoder.ts). */
export async function listAnswer<Desc extends DescMessage, Item>(
  context: HandlerContext,
  desc: Desc,
  items: readonly Item[],
  messageOf: MessageOf<Desc, Item>,
): Promise<MessageInitShape<Desc>> {
  const isJson = isJsonWanted(context);
  if (items.length < SLICED_ITEMS_MIN) return messageOf(items);
  return await encodeList({ desc, items, messageOf, isJson });
}

/**
 * Answers like `listAnswer`, with a message that holds more than the list: `rest` has that, and nothing in
 * the list.
 */
export async function listAnswerWith<Desc extends DescMessage, Item>(
  context: HandlerContext,
  desc: Desc,
  items: readonly Item[],
  messageOf: MessageOf<Desc, Item>,
  rest: MessageInitShape<Desc>,
): Promise<MessageInitShape<Desc>> {
  const isJson = isJsonWanted(context);
  if (items.length < SLICED_ITEMS_MIN) return { ...rest, ...messageOf(items) };
  return await encodeList({ desc, items, messageOf, rest, isJson });
}

/**
 * The answer of a list that comes page by page: a short one as it is; of a long one each page is
 * encoded as it comes, so that memory holds a page and the bytes of the answer. Reading stops when
 * the caller has gone. Errors: those of `pages`; CANCELLED.
 */
export async function pagedAnswer<Desc extends DescMessage, Item>(
  context: HandlerContext,
  desc: Desc,
  pages: AsyncIterable<readonly Item[]>,
  messageOf: MessageOf<Desc, Item>,
): Promise<MessageInitShape<Desc>> {
  const isJson = isJsonWanted(context);
  const iterator = pages[Symbol.asyncIterator]();
  const head: Item[] = [];
  try {
    while (head.length < SLICED_ITEMS_MIN) {
      const { done, value } = await iterator.next();
      if (done === true) return messageOf(head);
      for (const item of value) head.push(item);
    }
    const all = joined(head, iterator, context.signal);
    return await encodePages({ desc, pages: all, messageOf, isJson });
  } finally {
    // Releases what the pages are read from, wherever reading ended.
    await iterator.return?.();
  }
}

async function* joined<Item>(
  head: readonly Item[],
  rest: AsyncIterator<readonly Item[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly Item[], void, undefined> {
  yield head;
  for (;;) {
    if (signal.aborted) throw new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
    const { done, value } = await rest.next();
    if (done === true) return;
    yield value;
  }
}

/** Whether the caller of `context` gets JSON, over any protocol. */
export function isJsonWanted(context: HandlerContext): boolean {
  return context.responseHeader.get('content-type')?.includes('json') === true;
}
