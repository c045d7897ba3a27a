import type { Message } from '@bufbuild/protobuf';
import { malformed } from './decode-limits.ts';
import { isWithoutUnknown } from './message-decoder.ts';

/** More levels than our deepest message has. */
const DEPTH_MAX = 8;
/** Fields of type google.protobuf.Struct: plain objects whose keys belong to the caller. */
const STRUCT_FIELDS: ReadonlySet<string> = new Set(['context', 'conditionParams']);

/**
 * Refuses a binary message with fields that this version does not know, at any depth, as the JSON
 * decoder does. An ignored field might have narrowed the request.
 * Errors: BODY_MALFORMED. O(fields).
 */
export function assertNoUnknownFields(message: Message, depth = 0): void {
  if (depth === 0 && isWithoutUnknown(message)) return;
  const { $unknown: unknown } = message;
  if (unknown !== undefined && unknown.length > 0) {
    throw malformed(`${message.$typeName}: unknown field number ${unknown[0]?.no ?? 0}`);
  }
  if (depth === DEPTH_MAX) return;
  for (const [name, value] of Object.entries(message) as [string, unknown][]) {
    if (!STRUCT_FIELDS.has(name)) visit(value, depth + 1);
  }
}

function visit(value: unknown, depth: number): void {
  if (value === null || typeof value !== 'object') return;
  if (Array.isArray(value)) {
    for (const item of value) visit(item, depth);
  } else if ('$typeName' in value) {
    assertNoUnknownFields(value as Message, depth);
  } else if ('case' in value && 'value' in value) {
    visit(value.value, depth);
  }
}
