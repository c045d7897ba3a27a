import { malformedBinary, malformedJson } from '../../decoding/malformed-message.ts';
import { type MalformedMessage, problemTextOf } from '../../http/connect/protocol/call-errors.ts';
import type { AppError } from '../../shared/app-error.ts';

/** BODY_MALFORMED for what protobuf's readers threw about a message. Names the field where it is JSON. */
export function malformedMessage(
  thrown: Error,
  { input, isBinary, bytes }: MalformedMessage,
): AppError {
  const text = problemTextOf(thrown);
  if (isBinary) return malformedBinary(text, thrown);
  return malformedJson(text, thrown, bytes === undefined ? undefined : input);
}
