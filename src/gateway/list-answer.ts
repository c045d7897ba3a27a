import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { encodeList, SLICED_ITEMS_MIN } from './encoded-answer.ts';

/** Short lists as they are, long ones encoded in slices (encoded-answer.ts). */
export async function listAnswer<Desc extends DescMessage, Item>(
  context: HandlerContext,
  desc: Desc,
  items: readonly Item[],
  messageOf: (items: readonly Item[]) => MessageInitShape<Desc>,
): Promise<MessageInitShape<Desc>> {
  const contentType = context.responseHeader.get('content-type') ?? '';
  const isJson = contentType === 'application/json';
  // gRPC with JSON messages is encoded by the protocol's own handler, from the message itself.
  const isForeignJson = !isJson && contentType.includes('json');
  if (items.length < SLICED_ITEMS_MIN || isForeignJson) return messageOf(items);
  return await encodeList({ desc, items, messageOf, isJson });
}
