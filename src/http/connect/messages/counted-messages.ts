import { createContextKey } from '@connectrpc/connect';
import type { BodyHold } from '../../bodies/body-budget.ts';
import { COMPRESSED, ENVELOPE_BYTES, enveloped, lengthInEnvelope } from '../../bodies/envelope.ts';
import { gunzipCounted } from '../../bodies/gunzip-counted.ts';

/** What the decompressed message of a call holds; null where nothing of it is compressed. */
export const kDecompressed = createContextKey<BodyHold | null>(null, {
  description: 'decompressed',
});

/**
 * A body of messages in envelopes, in which no message is compressed with gzip any more: Connect decompresses without saying whose message
 * it is. What comes out counts in `hold`, until the next one is decompressed. What is no whole message, or longer than
 * `maxBytes`, is left to Connect to refuse. Errors: those of `gunzipCounted`.
 */
export async function* decompressedMessages(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  hold: BodyHold,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    let plainFrom = 0;
    for (let at = 0; at < bytes.length;) {
      const length = at + ENVELOPE_BYTES > bytes.length ? Infinity : lengthInEnvelope(bytes, at);
      const end = at + ENVELOPE_BYTES + length;
      if (end > bytes.length) break;
      const isOurs = bytes[at] === COMPRESSED && length > 0 && length <= maxBytes;
      if (isOurs) {
        if (plainFrom < at) yield bytes.subarray(plainFrom, at);
        const message = bytes.subarray(at + ENVELOPE_BYTES, end);
        hold.set(0, false);
        yield enveloped(await gunzipCounted(message, maxBytes, hold), false);
        plainFrom = end;
      }
      at = end;
    }
    if (plainFrom < bytes.length) yield bytes.subarray(plainFrom);
  }
}
