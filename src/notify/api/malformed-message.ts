import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import { namedInJson } from '../../decoding/malformed-message.ts';
import type { MalformedMessage } from '../../http/connect/protocol/call-errors.ts';
import { AppError } from '../../shared/app-error.ts';
import { nearestName } from '../../shared/text/nearest-name.ts';
import { invalidField } from '../model/reasons.ts';

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

/** A value of a body that its enum does not have. */
export type UnknownEnum = {
  /** As a path: `endpoint.channel`, `channels[1]`. */
  readonly field: string;
  /** For the caller: what is allowed, and the nearest of it. */
  readonly problem: string;
};

/**
 * The first value of `json`, a body of `message` that was read from JSON, which is no name of its field's enum. Undefined where
 * there is none. O(values); as deep as messages nest.
 */
export function unknownEnumIn(
  message: DescMessage,
  json: unknown,
  path = '',
): UnknownEnum | undefined {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined;
  for (const [name, value] of Object.entries(json)) {
    const field = message.fields.find((one) => one.name === name || one.jsonName === name);
    if (field === undefined) continue;
    const found = ofField(field, value, `${path}${field.name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function ofField(field: DescField, value: unknown, path: string): UnknownEnum | undefined {
  if (field.fieldKind === 'list' && Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      const found = ofValue(field, one, `${path}[${index}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return ofValue(field, value, path);
}

function ofValue(field: DescField, value: unknown, path: string): UnknownEnum | undefined {
  if (field.enum !== undefined) return ofEnum(field.enum, value, path);
  // What comes with protobuf has a form of its own in JSON.
  if (field.message === undefined || field.message.typeName.startsWith('google.')) return undefined;
  return unknownEnumIn(field.message, value, `${path}.`);
}

function ofEnum(type: DescEnum, value: unknown, field: string): UnknownEnum | undefined {
  if (value === null || typeof value === 'number') return undefined;
  if (typeof value === 'string' && type.values.some(({ name }) => name === value)) return undefined;
  // 0 stands for a value that is not given.
  const names = type.values.filter(({ number }) => number !== 0).map(({ name }) => name);
  const nearest = typeof value === 'string' ? nearestName(value, names) : undefined;
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  return { field, problem: `must be ${names.join(', ')}${hint}` };
}
