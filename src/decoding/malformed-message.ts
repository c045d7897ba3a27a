import type { DescMessage } from '@bufbuild/protobuf';
import { AppError } from '../shared/app-error.ts';
import type { SharedReason } from '../shared/reasons.ts';

/** Names in an error text of protobuf's JSON reader. */
export type NamedInJson = {
  /** The field that has a wrong value. */
  readonly field: string | undefined;
  /** A key that the message does not have. */
  readonly unknownKey: string | undefined;
  /** The type that was being read. */
  readonly typeName: string | undefined;
};

/** Extracts the names in an error text of protobuf's JSON reader. O(length). */
export function namedInJson(text: string): NamedInJson {
  return {
    field: /^cannot decode (?:field|oneof) (?:\S+\.)?(\w+) from JSON/.exec(text)?.[1],
    unknownKey: /: key "([^"]{1,100})" is unknown$/.exec(text)?.[1],
    typeName: /^cannot decode (?:message |enum )?(\S+) from JSON/.exec(text)?.[1],
  };
}

/** BODY_MALFORMED for an error text of protobuf's binary reader. */
export function malformedBinary(text: string, cause: Error): AppError {
  const problem = `the message cannot be decoded: ${text}`;
  return new AppError<SharedReason>('BODY_MALFORMED', problem, {}, cause);
}

/**
 * BODY_MALFORMED for an error text of protobuf's JSON reader while it read a `desc`. Names a field:
 * the one in the text, the unknown key, or the only field of the type in the text.
 */
export function malformedJson(text: string, cause: Error, desc?: DescMessage): AppError {
  const named = namedInJson(text);
  const { typeName } = named;
  const field =
    named.field ?? named.unknownKey ?? (desc && typeName && onlyFieldOfType(desc, typeName));
  if (!field) return new AppError<SharedReason>('BODY_MALFORMED', text, {}, cause);
  const message = text.includes(field) ? text : `${field}: ${text}`;
  return new AppError<SharedReason>('BODY_MALFORMED', message, { field }, cause);
}

const STRUCT_TYPE = 'google.protobuf.Struct';
/** Types within a Struct, whose keys the reader does not name. */
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
