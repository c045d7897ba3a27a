import { malformedBinary, malformedJson } from '../../decoding/malformed-message.ts';
import type { MalformedMessage } from '../../http/connect/protocol/call-errors.ts';
import type { AppError } from '../../shared/app-error.ts';

/** BODY_MALFORMED for what protobuf's readers threw about a message. Names the field where it is JSON. */
export function malformedMessage(thrown: Error, { input, isBinary }: MalformedMessage): AppError {
  const text = thrown.message;
  return isBinary ? malformedBinary(text, thrown) : malformedJson(text, thrown, input);
}
