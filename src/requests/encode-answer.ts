import {
  create,
  type DescMessage,
  type Message,
  toBinary,
  toJson,
  toJsonString,
} from '@bufbuild/protobuf';
import type { WireFormat } from '../protocol/shard-client.ts';
import { TOKEN_CHARACTERS } from '../protocol/token-space.ts';
import { ANSWER_JSON } from '../shared/answer-json.ts';

/** Maximum number of items encoded in one step. */
const ITEMS_PER_STEP = 256;
const TOKEN = 'consistency_token';
const TOKEN_SPACE = ' '.repeat(TOKEN_CHARACTERS);
const LENGTH_DELIMITED = 2;
const COMMA = Buffer.from(',');

/** An encoded answer, and the offset of the space for its consistency token. */
export type EncodedAnswer = { readonly body: Uint8Array; readonly tokenAt: number };

/** Fields of a message by name. */
type AnswerFields = Record<string, unknown>;

/**
 * Encodes an answer whose `consistency_token` is empty, with space for a token, in steps that the caller runs to the
 * end. Apart from the token, the bytes equal those of the library. A list is encoded in parts if it is the first field,
 * with number 1. O(bytes).
 */
export function* encodeAnswer(
  desc: DescMessage,
  answer: Message,
  format: WireFormat,
): Generator<void, EncodedAnswer> {
  const fields = answer as unknown as AnswerFields;
  const [first] = desc.fields;
  const name = first?.fieldKind === 'list' ? first.localName : '';
  const items = name === '' ? [] : (fields[name] as readonly unknown[]);
  const encoded = format === 'json' ? encodedJson : encodedBinary;
  if (items.length <= ITEMS_PER_STEP) return encoded(desc, fields, []);
  const parts: Message[] = [];
  for (let at = 0; at < items.length; at += ITEMS_PER_STEP) {
    parts.push(withFields(desc, { [name]: items.slice(at, at + ITEMS_PER_STEP) }));
  }
  const encodePart = format === 'json' ? jsonPartOf(desc) : (part: Message) => toBinary(desc, part);
  const chunks: Uint8Array[] = [];
  for (const part of parts) {
    if (format === 'json' && chunks.length > 0) chunks.push(COMMA);
    chunks.push(encodePart(part));
    yield;
  }
  return encoded(desc, { ...fields, [name]: [] }, chunks);
}

function withFields(desc: DescMessage, fields: AnswerFields): Message {
  return Object.assign(create(desc), fields);
}

/**
 * Returns the encoder of one part: it extracts the text between the brackets of the list. Around its list, a part has
 * the same text as an empty message.
 */
function jsonPartOf(desc: DescMessage): (part: Message) => Uint8Array {
  const [before, after] = aroundList(toJsonString(desc, create(desc), ANSWER_JSON));
  return (part) => {
    const text = toJsonString(desc, part, ANSWER_JSON);
    return Buffer.from(text.slice(before.length, -after.length));
  };
}

/** Splits the text of a message whose first list is empty, inside the brackets of that list. */
function aroundList(text: string): readonly [string, string] {
  const at = text.indexOf('[]') + 1;
  return [text.slice(0, at), text.slice(at)];
}

/**
 * Encodes a message as JSON. `chunks` are the encoded items of the first list; if there are any, that list is empty in
 * `fields`.
 */
function encodedJson(
  desc: DescMessage,
  fields: AnswerFields,
  chunks: readonly Uint8Array[],
): EncodedAnswer {
  const json = toJson(desc, withFields(desc, fields), ANSWER_JSON) as object;
  const members = Object.entries(json).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  // Found by position: nested members may have any name, also this one.
  const at = Object.keys(json).indexOf(TOKEN);
  members[at] = `"${TOKEN}":"${TOKEN_SPACE}"`;
  const behind = ['', ...members.slice(at + 1)].join(',');
  const whole = `{${members.slice(0, at + 1).join(',')}`;
  const [opening, rest] = chunks.length === 0 ? [whole, ''] : aroundList(whole);
  const before = Buffer.concat([Buffer.from(opening), ...chunks, Buffer.from(rest)]);
  const body = Buffer.concat([before, Buffer.from(`${behind}}`)]);
  return { body, tokenAt: before.length - TOKEN_CHARACTERS - 1 };
}

/** Encodes a message as binary. Fields are written in the order of their numbers, as the library writes them. */
function encodedBinary(
  desc: DescMessage,
  fields: AnswerFields,
  chunks: readonly Uint8Array[],
): EncodedAnswer {
  const number = desc.fields.find((field) => field.name === TOKEN)?.number ?? 0;
  const some = (isBefore: boolean): Uint8Array => {
    const chosen = desc.fields.filter((field) => field.number < number === isBefore);
    const named = chosen.map(({ localName }) => [localName, fields[localName]] as const);
    return toBinary(desc, withFields(desc, Object.fromEntries(named)));
  };
  const tag = Buffer.of((number << 3) | LENGTH_DELIMITED, TOKEN_CHARACTERS); // numbers below 16
  const before = Buffer.concat([...chunks, some(true), tag]);
  const body = Buffer.concat([before, Buffer.from(TOKEN_SPACE), some(false)]);
  return { body, tokenAt: before.length };
}
