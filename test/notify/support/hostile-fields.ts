import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  ScalarType,
  toBinary,
  type Message,
} from '@bufbuild/protobuf';

/** One field of a request with a value that nobody should send. */
export type HostileRequest = {
  /** `method field = value`, short. */
  readonly name: string;
  readonly method: string;
  readonly contentType: 'application/json' | 'application/proto';
  readonly body: Uint8Array;
};

const UUID = '0190b2f0-7c1e-7c3a-9d0e-5b1f2a3c4d5e';
const nested = (depth: number): object =>
  JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as object;

const TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  'a\nb',
  'a\r\nBcc: x@example.test',
  '\u0001',
  '\u001b[31m',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u202e',
  '\u{10ffff}',
  '\ud800',
  '-',
  '-oQ/tmp/x@example.test',
  "' or 1=1 --",
  '%00',
  '\\',
  '../../etc/passwd',
  'x'.repeat(129),
  'x'.repeat(2_049),
  'ü'.repeat(60_000),
  '99999999999999999999',
  '-1',
  '0',
  'NaN',
  UUID,
  UUID.toUpperCase(),
  `${UUID}\0`,
  'http://169.254.169.254/latest/meta-data/',
  'http://[fd00:ec2::254]/',
  'http://user:secret@example.test/',
  'http://example.test:99999/',
  'ftp://example.test/',
  `whsec_${'A'.repeat(31)}`,
  'a"b@example.test',
  '@',
];
const INTEGERS = [0, 1, -1, 500, 501, 3_601, 2_147_483_647, -2_147_483_648];
const LONGS = [0n, 1n, -1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
const ENUMS = [0, 1, 2, 3, 4, 99, -1, 2_147_483_647];
const STRUCTS: readonly object[] = [
  {},
  { '': '' },
  { 'a\0b': 1 },
  { a: 'b\0' },
  { a: '\ud800' },
  JSON.parse('{"__proto__":{"x":1}}') as object,
  { a: 1e308, b: -0, c: 5e-324 },
  nested(64),
  nested(65),
  nested(1_500),
  { a: 'x'.repeat(17_000) },
  { list: Array.from({ length: 4_000 }, () => 1) },
];
const TIMESTAMPS = [
  { seconds: 0n, nanos: 0 },
  { seconds: -62_135_596_800n, nanos: 0 },
  { seconds: 253_402_300_799n, nanos: 999_999_999 },
  { seconds: 2n ** 63n - 1n, nanos: 0 },
  { seconds: -(2n ** 63n), nanos: -1 },
  { seconds: 1n, nanos: 2_147_483_647 },
];
/** In place of anything, as JSON alone can say it. */
const WRONG_TYPES = ['null', '1e999', '{}', '[]', '"x"', 'true', '12345678901234567890', '[[1]]'];

/**
 * Every field of `method`'s request, those of messages in it, too, with every hostile value of its type, in JSON and
 * binary; all others as in `base`. Fields are the schema's: a new one is in the table by itself.
 */
export function hostileRequests(method: DescMethod, base: object): readonly HostileRequest[] {
  const path = `/${method.parent.typeName}/${method.name}`;
  const found: HostileRequest[] = [];
  for (const way of waysOf(method.input)) {
    for (const value of valuesOf(way.at(-1) as DescField)) {
      const label = `${method.name} ${way.map(({ name }) => name).join('.')} = ${labelOf(value)}`;
      const plain = withValue(base, way, value);
      const binary = binaryOf(method.input, plain);
      if (binary !== undefined) {
        found.push({ name: label, method: path, contentType: 'application/proto', body: binary });
      }
      const text = JSON.stringify(plain, jsonValue);
      found.push({
        name: label,
        method: path,
        contentType: 'application/json',
        body: Buffer.from(text),
      });
    }
    for (const wrong of WRONG_TYPES) {
      const marked = JSON.stringify(withValue(base, way, '#wrong#'), jsonValue);
      found.push({
        name: `${method.name} ${way.map(({ name }) => name).join('.')} : ${wrong}`,
        method: path,
        contentType: 'application/json',
        body: Buffer.from(marked.replaceAll('"#wrong#"', wrong)),
      });
    }
  }
  return found;
}

/** Ways to each field, through messages that are ours. */
function waysOf(message: DescMessage): readonly (readonly DescField[])[] {
  return message.fields.flatMap((field) => {
    const inner = field.fieldKind === 'message' ? field.message : undefined;
    if (inner === undefined || inner.typeName.startsWith('google.')) return [[field]];
    return [[field], ...waysOf(inner).map((rest) => [field, ...rest])];
  });
}

function valuesOf(field: DescField): readonly unknown[] {
  const single = singleValuesOf(field);
  if (field.fieldKind !== 'list') return single;
  const many = Array.from({ length: 501 }, () => single[0]);
  return [[], ...single.map((value) => [value]), many];
}

function singleValuesOf(field: DescField): readonly unknown[] {
  if (field.enum !== undefined) return ENUMS;
  if (field.message !== undefined) {
    if (field.message.typeName === 'google.protobuf.Struct') return STRUCTS;
    if (field.message.typeName === 'google.protobuf.Timestamp') return TIMESTAMPS;
    return [{}];
  }
  if (field.scalar === ScalarType.STRING) return TEXTS;
  if (field.scalar === ScalarType.INT32) return INTEGERS;
  if (field.scalar === ScalarType.INT64) return LONGS;
  if (field.scalar === ScalarType.BOOL) return [true, false];
  throw new Error(`no hostile values for ${field.name}`);
}

function withValue(
  base: object,
  way: readonly DescField[],
  value: unknown,
): Record<string, unknown> {
  const [first, ...rest] = way as [DescField, ...DescField[]];
  const inner = (base as Record<string, object | undefined>)[first.localName] ?? {};
  return { ...base, [first.localName]: rest.length === 0 ? value : withValue(inner, rest, value) };
}

/** Undefined for what the encoder itself refuses. */
function binaryOf(schema: DescMessage, plain: Record<string, unknown>): Uint8Array | undefined {
  try {
    return toBinary(schema, create(schema, plain) as Message);
  } catch {
    return undefined;
  }
}

function jsonValue(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

function labelOf(value: unknown): string {
  return JSON.stringify(value, jsonValue).slice(0, 60);
}
