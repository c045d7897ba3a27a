import {
  type DescField,
  type DescMessage,
  type DescService,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import { BudgetService } from '../../src/gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { Health } from '../../src/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { DeliveryService } from '../../src/gen/notify/v1/delivery_service_pb.ts';
import { NotifyService } from '../../src/gen/notify/v1/notify_service_pb.ts';
import { StreamService } from '../../src/gen/notify/v1/stream_service_pb.ts';
import { AdminService } from '../../src/gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../../src/gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../../src/gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../../src/gen/workspace/v1/workspace_service_pb.ts';
import { anyCharacter } from '../support/any-text.ts';
import { TIMES } from '../support/times.ts';

const SERVICES: readonly DescService[] = [
  BudgetService,
  ModelService,
  QueryService,
  TupleService,
  Health,
  ServerReflection,
  DeliveryService,
  NotifyService,
  StreamService,
  AdminService,
  AuthzService,
  GroupService,
  SeatService,
  WorkspaceService,
];

/** The request of each method of all services; those with lists and Structs come more often. */
export const INPUTS: readonly DescMessage[] = SERVICES.flatMap(({ methods }) =>
  methods.map(({ input }) => input),
).flatMap((input) => (hasMuch(input) ? [input, input, input, input] : [input]));

function hasMuch({ fields }: DescMessage): boolean {
  return fields.some(({ fieldKind, message }) => fieldKind === 'list' || message !== undefined);
}

/** JSON text of a message; nearly always a valid one. `itemsMax` of each list of the root. */
export function jsonTextOf(desc: DescMessage, itemsMax: number): fc.Arbitrary<string> {
  return objectOf(desc, itemsMax, 4);
}

const space = fc.constantFrom('', '', '', '', ' ', '\n', '\t ', '\r\n');
const unusual = fc.constantFrom('null', '{}', '[]', '"x"', '1', 'true', '[1,{"a":[2]}]', '-0.5e3');

function objectOf(desc: DescMessage, itemsMax: number, depth: number): fc.Arbitrary<string> {
  const members = desc.fields.map((field) => memberOf(field, itemsMax, depth));
  const rare = fc.oneof(
    { weight: 60, arbitrary: fc.constant('') },
    { weight: 1, arbitrary: unusual.map((value) => `"no_such_key":${value}`) },
    { weight: 1, arbitrary: fc.oneof(fc.constant(''), ...members) },
  );
  return fc
    .tuple(fc.tuple(...members), rare, space, fc.infiniteStream(space))
    .map(([all, one, before, spaces]) => {
      const given = withoutClashes(desc, all);
      if (one !== '') given.push(one);
      const next = (): string => spaces.next().value ?? '';
      return `${before}{${next()}${given.map((member) => `${member}${next()}`).join(',')}}`;
    });
}

/** One of each oneof alone. */
function withoutClashes(desc: DescMessage, members: readonly string[]): string[] {
  const seen = new Set<unknown>();
  return members.filter((member, i) => {
    const { oneof } = desc.fields[i] ?? {};
    if (member === '' || (oneof !== undefined && seen.has(oneof))) return false;
    if (oneof !== undefined) seen.add(oneof);
    return true;
  });
}

function memberOf(field: DescField, itemsMax: number, depth: number): fc.Arbitrary<string> {
  const escaped = `\\u00${(field.name.codePointAt(0) ?? 0).toString(16)}${field.name.slice(1)}`;
  const name = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(field.name, field.jsonName) },
    { weight: 1, arbitrary: fc.constant(escaped) },
  );
  const value = fc.oneof(
    { weight: 80, arbitrary: valueOf(field, itemsMax, depth) },
    { weight: 1, arbitrary: unusual },
  );
  const member = fc.tuple(name, space, space, value).map(([n, a, b, v]) => `"${n}"${a}:${b}${v}`);
  return fc.oneof({ weight: 1, arbitrary: fc.constant('') }, { weight: 3, arbitrary: member });
}

function valueOf(field: DescField, itemsMax: number, depth: number): fc.Arbitrary<string> {
  if (field.fieldKind !== 'list') return oneOf(field, itemsMax, depth);
  const maxLength = depth === 4 || itemsMax > 3 ? itemsMax : 3;
  return fc
    .tuple(fc.array(oneOf(field, 2, depth - 1), { maxLength, size: 'max' }), space)
    .map(([items, after]) => `[${items.join(`,${after}`)}${after}]`);
}

function oneOf(field: DescField, itemsMax: number, depth: number): fc.Arbitrary<string> {
  const { message } = field;
  if (field.enum !== undefined) {
    const names = field.enum.values.map(({ name }) => JSON.stringify(name));
    return fc.constantFrom(...names, ...field.enum.values.map(({ number }) => String(number)));
  }
  if (message === undefined) return scalarOf(field.scalar);
  switch (message.typeName) {
    case 'google.protobuf.Struct':
      return fc.dictionary(text, anything, { maxKeys: 8 }).map((value) => JSON.stringify(value));
    case 'google.protobuf.Timestamp':
      return fc.constantFrom('"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05.123456789+01:00"');
    default:
      return depth === 0 ? fc.constant('{}') : objectOf(message, itemsMax, depth - 1);
  }
}

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: anyCharacter, maxLength: 12 }).map((value) => value.toWellFormed()),
  fc.constantFrom('', 'a'.repeat(300), '\u{feff}', '"', '\\', '__proto__', '1'),
);
const anything = fc.jsonValue({ maxDepth: 3 });

function scalarOf(scalar: ScalarType | undefined): fc.Arbitrary<string> {
  switch (scalar) {
    case ScalarType.STRING:
      return text.map((value) => JSON.stringify(value));
    case ScalarType.BYTES:
      return fc.base64String({ maxLength: 20 }).map((value) => JSON.stringify(value));
    case ScalarType.BOOL:
      return fc.constantFrom('true', 'false');
    case ScalarType.INT32:
    case ScalarType.UINT32:
      return fc.oneof(
        fc.nat().map(String),
        fc.nat().map((value) => `"${value}"`),
      );
    default:
      return fc.oneof(
        fc.bigInt(0n, 2n ** 63n - 1n).map((value) => `"${value}"`),
        fc.nat().map(String),
      );
  }
}

/** The ways to the fields of a message that are wanted, found by its descriptor alone. Not through maps. */
export function waysTo(
  desc: DescMessage,
  isWanted: (field: DescField) => boolean,
  above: readonly DescMessage[] = [],
): DescField[][] {
  if (above.includes(desc)) return [];
  return desc.fields.flatMap((field) => {
    if (field.fieldKind === 'map') return [];
    if (isWanted(field)) return [[field]];
    if (!field.message) return [];
    return waysTo(field.message, isWanted, [...above, desc]).map((way) => [field, ...way]);
  });
}

/** The JSON of a message with a value at the end of a way, in either spelling; of a list it is the last of `items`. */
export function jsonAt(
  way: readonly DescField[],
  value: unknown,
  isCamel: boolean,
  items = 1,
): object {
  const [field, ...rest] = way;
  if (field === undefined) throw new Error('there is no way');
  const inner = rest.length === 0 ? value : jsonAt(rest, value, isCamel, items);
  const before = Array.from({ length: items - 1 }, () => (rest.length === 0 ? TIMES[0]?.[0] : {}));
  const whole = field.fieldKind === 'list' ? [...before, inner] : inner;
  return { [isCamel ? field.jsonName : field.name]: whole };
}

/** What stands at the end of a way in a message; in lists, in the last item. */
export function valueAt(message: Message, way: readonly DescField[]): unknown {
  let at: unknown = message;
  for (const { oneof, localName } of way) {
    const holder = at as Record<string, unknown>;
    at = oneof ? (holder[oneof.localName] as { value: unknown }).value : holder[localName];
    if (Array.isArray(at)) at = at.at(-1);
  }
  return at;
}
