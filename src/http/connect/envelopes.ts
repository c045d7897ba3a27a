import { Code, ConnectError } from '@connectrpc/connect';
import type { EnvelopedMessage } from '@connectrpc/connect/protocol';
import { AppError } from '../../shared/app-error.ts';
import { ENVELOPE_BYTES, lengthInEnvelope } from '../bodies/envelope.ts';
import { bodyTooLarge } from '../bodies/gunzip-limited.ts';
import type { ConnectReason } from './protocol/connect-reason.ts';

/**
 * The messages in whole envelopes, in place: Connect's own reader takes parts of them, and copies. Errors: BODY_TOO_LARGE for one
 * that states more than `bytesMax`, BODY_MALFORMED for one that is cut short.
 */
export function* envelopesIn(bytes: Uint8Array, bytesMax: number): Generator<EnvelopedMessage> {
  for (let at = 0; at < bytes.length;) {
    const from = at + ENVELOPE_BYTES;
    const length = from > bytes.length ? 0 : lengthInEnvelope(bytes, at);
    if (length > bytesMax) throw bodyTooLarge(bytesMax);
    if (from + length > bytes.length) {
      throw new AppError<ConnectReason>('BODY_MALFORMED', 'the last envelope is cut short');
    }
    yield { flags: bytes[at] as number, data: bytes.subarray(from, from + length) };
    at = from + length;
  }
}

/** The only envelope with a message. Errors: those of `envelopesIn`; unimplemented for none or several, as Connect's own code has it. */
export function onlyEnvelope(
  bytes: Uint8Array,
  bytesMax: number,
  endFlag: number,
): EnvelopedMessage {
  let found: EnvelopedMessage | undefined;
  for (const envelope of envelopesIn(bytes, bytesMax)) {
    if ((envelope.flags & endFlag) !== 0) continue;
    if (found !== undefined) throw wrongCount('received extra');
    found = envelope;
  }
  if (found === undefined) throw wrongCount('missing');
  return found;
}

function wrongCount(what: string): ConnectError {
  const text = `protocol error: ${what} input message for unary method`;
  return new ConnectError(text, Code.Unimplemented);
}
