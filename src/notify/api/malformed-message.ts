import type { DescMessage } from '@bufbuild/protobuf';
import { namedInJson } from '../../decoding/malformed-message.ts';
import type { MalformedMessage } from '../../http/connect/protocol/call-errors.ts';
import { AppError } from '../../shared/app-error.ts';
import { invalidField } from '../core/invalid-field.ts';
import { unknownEnumIn } from './unknown-enum.ts';

/** A longer body is not read a second time to say more of it. */
const READ_AGAIN_BYTES_MAX = 65_536;

/**
 * BODY_MALFORMED for what protobuf's readers threw about a message. Of JSON it names the field or the unknown key, if the reader does; for
 * a value that an enum does not have it is FIELD_INVALID, which says what there is. The reader's text is the cause alone: it quotes
 * values, of secrets, too.
 */
export function malformedMessage(
  thrown: Error,
  { input, isBinary, bytes }: MalformedMessage,
): AppError {
  const { typeName } = input;
  if (isBinary) {
    return new AppError('BODY_MALFORMED', `the body is no ${typeName}`, {}, thrown);
  }
  const text = thrown.message;
  const unknown = unknownEnumOf(text, input, bytes);
  if (unknown !== undefined) return unknown;
  const { field, unknownKey } = namedInJson(text);
  const problem = `the body is no JSON of ${typeName}`;
  if (unknownKey !== undefined) {
    const detail = `${problem}; it has no field ${unknownKey}`;
    return new AppError('BODY_MALFORMED', detail, { field: unknownKey }, thrown);
  }
  if (field === undefined) return new AppError('BODY_MALFORMED', problem, {}, thrown);
  return new AppError('BODY_MALFORMED', `${problem}; look at ${field}`, { field }, thrown);
}

function unknownEnumOf(text: string, input: DescMessage, bytes: Uint8Array): AppError | undefined {
  if (!text.startsWith('cannot decode enum ') || bytes.length > READ_AGAIN_BYTES_MAX) return;
  const unknown = unknownEnumIn(input, JSON.parse(new TextDecoder().decode(bytes)));
  return unknown === undefined ? undefined : invalidField(unknown.field, unknown.problem);
}
