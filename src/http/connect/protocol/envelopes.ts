import { Code, ConnectError } from '@connectrpc/connect';
import type { EnvelopedMessage } from '@connectrpc/connect/protocol';
import { AppError } from '../../../shared/app-error.ts';
import type { SharedReason } from '../../../shared/reasons.ts';
import { ENVELOPE_BYTES, lengthInEnvelope } from '../../bodies/envelope.ts';
import { bodyTooLarge } from '../../bodies/gzip.ts';

/**
 * Reads the messages in whole envelopes, in place; Connect's own reader takes parts of envelopes, and copies. An envelope
 * with `endFlag` holds no message, and is the last.
 * Errors: BODY_TOO_LARGE for one that states more than `bytesMax`, BODY_MALFORMED for one that is cut short or behind the
 * last.
 */
export function* messagesIn(
  bytes: Uint8Array,
  bytesMax: number,
  endFlag: number,
): Generator<EnvelopedMessage> {
  for (let at = 0; at < bytes.length;) {
    const from = at + ENVELOPE_BYTES;
    const length = from > bytes.length ? 0 : lengthInEnvelope(bytes, at);
    if (length > bytesMax) throw bodyTooLarge(bytesMax);
    if (from + length > bytes.length) throw malformed('the last envelope is cut short');
    const flags = bytes[at] as number;
    at = from + length;
    if ((flags & endFlag) === 0) yield { flags, data: bytes.subarray(from, at) };
    else if (at < bytes.length) throw malformed('an envelope follows the last one');
  }
}

/**
 * Reads the only envelope with a message. Errors: those of `messagesIn`; unimplemented for none or several, as in Connect's
 * own code.
 */
export function onlyEnvelope(
  bytes: Uint8Array,
  bytesMax: number,
  endFlag: number,
): EnvelopedMessage {
  let found: EnvelopedMessage | undefined;
  for (const envelope of messagesIn(bytes, bytesMax, endFlag)) {
    if (found !== undefined) throw wrongCount('received extra');
    found = envelope;
  }
  if (found === undefined) throw wrongCount('missing');
  return found;
}

function malformed(problem: string): AppError {
  return new AppError<SharedReason>('BODY_MALFORMED', problem);
}

function wrongCount(what: string): ConnectError {
  const text = `protocol error: ${what} input message for unary method`;
  return new ConnectError(text, Code.Unimplemented);
}
