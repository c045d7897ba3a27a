import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import { withEncoded } from '../../http/connect/protocol/encoded-answer.ts';
import { ANSWER_JSON } from '../../shared/answer-json.ts';

/** Encoding stops for other work after this long. */
const SLICE_MS = 2;
/** Items between two reads of the clock. */
const ITEMS_PER_CHUNK = 64;
/** Shorter lists are left to the adapter, which encodes at once. */
export const SLICED_ITEMS_MIN = 256;

/** How an answer with one long repeated field is put together from chunks of that field. */
type ListForm<Desc extends DescMessage, Item> = {
  readonly desc: Desc;
  /** The other members of the answer, with that field empty; absent: none. */
  readonly rest?: MessageInitShape<Desc> | undefined;
  /** The message that holds these items and nothing else. */
  readonly messageOf: (items: readonly Item[]) => MessageInitShape<Desc>;
  /** Whether the caller gets JSON. */
  readonly isJson: boolean;
};

/**
 * The answer of a long list, encoded in slices of 2 ms with the event loop turning in between; the
 * adapter then only copies bytes. The field must be number 1, repeated, of strings or messages.
 * O(items).
 */
export async function encodeList<Desc extends DescMessage, Item>(
  answer: ListForm<Desc, Item> & { readonly items: readonly Item[] },
): Promise<MessageShape<Desc>> {
  return await encodePages({ ...answer, pages: [answer.items] });
}

/** Encodes like `encodeList` a list that comes page by page: memory holds a page and the encoded bytes. */
export async function encodePages<Desc extends DescMessage, Item>(
  answer: ListForm<Desc, Item> & {
    readonly pages: Iterable<readonly Item[]> | AsyncIterable<readonly Item[]>;
  },
): Promise<MessageShape<Desc>> {
  const encoder = new ListMessageEncoder(answer);
  for await (const page of answer.pages) await encoder.add(page);
  return encoder.finish();
}

/**
 * Encodes a list chunk by chunk. In binary the chunks travel as unknown fields, which are written unchanged: a repeated field
 * may come in any number of parts.
 */
class ListMessageEncoder<Desc extends DescMessage, Item> {
  readonly #answer: ListForm<Desc, Item>;
  readonly #chunks: Uint8Array[] = [];
  #around: readonly [string, string] | undefined;
  #sliceEndMs = performance.now() + SLICE_MS;

  constructor(answer: ListForm<Desc, Item>) {
    this.#answer = answer;
  }

  /** Encodes more items; other work gets its turn in between. */
  async add(items: readonly Item[]): Promise<void> {
    const { desc, messageOf, isJson } = this.#answer;
    for (let at = 0; at < items.length; at += ITEMS_PER_CHUNK) {
      const message = create(desc, messageOf(items.slice(at, at + ITEMS_PER_CHUNK)));
      this.#chunks.push(isJson ? this.#elementsOf(message) : toBinary(desc, message));
      if (performance.now() < this.#sliceEndMs) continue;
      await nextTurn();
      this.#sliceEndMs = performance.now() + SLICE_MS;
    }
  }

  /** The text between the brackets of a chunk's list; the text around it is that of an empty one. */
  #elementsOf(chunk: MessageShape<Desc>): Uint8Array {
    const { desc, messageOf } = this.#answer;
    this.#around ??= aroundList(toJsonString(desc, create(desc, messageOf([])), ANSWER_JSON));
    const [start, end] = this.#around;
    return Buffer.from(toJsonString(desc, chunk, ANSWER_JSON).slice(start.length, -end.length));
  }

  /** The message that holds everything added; once. */
  finish(): MessageShape<Desc> {
    const { desc, messageOf, isJson, rest } = this.#answer;
    const whole = create(desc, rest ?? messageOf([]));
    if (isJson) {
      const [start, end] = aroundList(toJsonString(desc, whole, ANSWER_JSON));
      const parts: Uint8Array[] = [Buffer.from(start)];
      this.#chunks.forEach((chunk, index) => {
        if (index > 0) parts.push(COMMA);
        parts.push(chunk);
      });
      return withEncoded(whole, [...parts, Buffer.from(end)], true);
    }
    return withEncoded(whole, this.#chunks, false);
  }
}

const COMMA = Buffer.from(',');

/** A message whose first list is empty, cut within that list. */
function aroundList(text: string): readonly [string, string] {
  const at = text.indexOf('[]') + 1;
  return [text.slice(0, at), text.slice(at)];
}
