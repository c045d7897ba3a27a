import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import {
  type DecodeLimits,
  type ItemsLimit,
  LIST_ITEMS_MAX,
  REST_BYTES_MAX,
  TEXT_BYTES_MAX,
  TOKEN_BYTES_MAX,
} from './decode-limits.ts';
import { JsonNames } from './json-names.ts';

/** Shape of a message for scanners: its fields by their numbers, and by both spellings in JSON. */
export type MessageShape = {
  readonly desc: DescMessage;
  readonly byNumber: ReadonlyMap<number, FieldShape>;
  /** True if a list hangs on it by single messages. */
  readonly reachesLists: boolean;
  /** Fields by both spellings. */
  readonly names: JsonNames<FieldShape>;
};

export type FieldShapeKind = 'text' | 'token' | 'message' | 'struct';

export type FieldShape = {
  readonly field: DescField;
  readonly name: string;
  readonly number: number;
  /** `token`: numbers, enums, booleans, and anything that JSON writes as a short text. */
  readonly kind: FieldShapeKind;
  readonly isList: boolean;
  readonly isMap: boolean;
  /** Limit of the items, if it is a list. */
  readonly items: ItemsLimit;
  /** Most bytes of a text or token, as received. */
  readonly bytesMax: number;
  /** Bytes of a fixed-width scalar; 0 for a varint. */
  readonly fixedBytes: number;
  /** Shape of the field's message; for a map, that of its values. Throws if there is none. */
  readonly message: () => MessageShape;
};

const NO_LIMIT_OF_ITS_OWN: ItemsLimit = { max: LIST_ITEMS_MAX };

/** Shapes under one set of limits, each made at its first use. */
export class MessageShapes {
  readonly #limits: DecodeLimits;
  readonly #shapes = new Map<DescMessage, MessageShape>();

  constructor(limits: DecodeLimits) {
    this.#limits = limits;
  }

  of(desc: DescMessage): MessageShape {
    let shape = this.#shapes.get(desc);
    if (shape === undefined) {
      const fields = desc.fields.map((field) => this.#field(desc, field));
      shape = {
        desc,
        byNumber: new Map(fields.map((field) => [field.number, field])),
        reachesLists: reachesLists(desc, new Set()),
        names: new JsonNames(
          new Map(
            fields.flatMap((one) =>
              [one.field.name, one.field.jsonName].map((name) => [name, one] as const),
            ),
          ),
        ),
      };
      this.#shapes.set(desc, shape);
    }
    return shape;
  }

  #field(desc: DescMessage, field: DescField): FieldShape {
    const { name, number, fieldKind } = field;
    const fullName = `${desc.typeName}.${name}`;
    const kind = kindOf(field);
    // Bytes cost nothing: the library does not copy them.
    const ownMax = field.scalar === ScalarType.BYTES ? REST_BYTES_MAX : TEXT_BYTES_MAX;
    const textMax = this.#limits.textBytes?.get(fullName) ?? ownMax;
    return {
      field,
      name,
      number,
      kind,
      isList: fieldKind === 'list',
      isMap: fieldKind === 'map',
      items: this.#limits.items?.get(fullName) ?? NO_LIMIT_OF_ITS_OWN,
      bytesMax: kind === 'text' ? textMax : TOKEN_BYTES_MAX,
      fixedBytes: fixedBytesOf(field.scalar),
      message: () => this.#messageOf(field),
    };
  }

  #messageOf({ message }: DescField): MessageShape {
    if (message === undefined) throw new Error('a field of another kind has no message');
    return this.of(message);
  }
}

function reachesLists(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(({ fieldKind, message }) => {
    if (fieldKind === 'list') return true;
    const isOwn = fieldKind === 'message' && !message.typeName.startsWith('google.protobuf.');
    return isOwn && reachesLists(message, seen);
  });
}

/** Types that protobuf does not write as ordinary JSON objects. */
const STRUCT_TYPES = new Set(
  ['Struct', 'Value', 'ListValue'].map((one) => `google.protobuf.${one}`),
);

function kindOf({ message, scalar, fieldKind }: DescField): FieldShapeKind {
  if (fieldKind === 'map') return 'struct';
  if (message !== undefined) return STRUCT_TYPES.has(message.typeName) ? 'struct' : 'message';
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES ? 'text' : 'token';
}

function fixedBytesOf(scalar: ScalarType | undefined): number {
  switch (scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return 8;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return 4;
    default:
      return 0;
  }
}
