import type { DescMessage } from '@bufbuild/protobuf';
import {
  type MalformedMessage,
  namedInJson,
  problemTextOf,
} from '../../http/connect/protocol/call-errors.ts';
import type { ConnectReason } from '../../http/connect/protocol/connect-reason.ts';
import { AppError } from '../../shared/app-error.ts';

/** BODY_MALFORMED for what protobuf's readers threw about a message. Names the field where it is JSON. */
export function malformedMessage(
  thrown: Error,
  { input, isBinary, bytes }: MalformedMessage,
): AppError {
  if (!isBinary) return malformedJson(thrown, bytes === undefined ? undefined : input);
  const problem = `the message cannot be decoded: ${problemTextOf(thrown)}`;
  return new AppError<ConnectReason>('BODY_MALFORMED', problem, {}, thrown);
}

/**
 * BODY_MALFORMED for an error of protobuf's JSON reader while it read a `desc`. Names the field:
 * the one that the reader names, the unknown key, or else the only one of the type that it names.
 */
export function malformedJson(error: Error, desc?: DescMessage): AppError {
  const text = problemTextOf(error);
  const named = namedInJson(text);
  const { typeName } = named;
  const field =
    named.field ?? named.unknownKey ?? (desc && typeName && onlyFieldOfType(desc, typeName));
  if (!field) return new AppError<ConnectReason>('BODY_MALFORMED', text, {}, error);
  const message = text.includes(field) ? text : `${field}: ${text}`;
  return new AppError<ConnectReason>('BODY_MALFORMED', message, { field }, error);
}

const STRUCT_TYPE = 'google.protobuf.Struct';
/** What lies within a Struct, under keys that the reader does not say. */
const IN_STRUCTS = new Set(['google.protobuf.Value', 'google.protobuf.ListValue']);

function onlyFieldOfType(desc: DescMessage, typeName: string): string | undefined {
  const found = new Set<string>();
  const visited = new Set<DescMessage>();
  const visit = (message: DescMessage, prefix: string): void => {
    if (visited.has(message)) return;
    visited.add(message);
    for (const field of message.fields) {
      const isStruct = field.message?.typeName === STRUCT_TYPE;
      const isOfType = (field.message ?? field.enum)?.typeName === typeName;
      if (isOfType || (isStruct && IN_STRUCTS.has(typeName))) found.add(prefix + field.name);
      else if (field.message !== undefined && !isStruct)
        visit(field.message, `${prefix}${field.name}.`);
    }
  };
  visit(desc, '');
  const [only] = found;
  return found.size === 1 ? only : undefined;
}
