/* The scope that the gateway reads from a question is the one that its worker decodes, body by random body. */
import { type DescMessage, ScalarType } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { assertNoUnknownFields } from '../../src/decoding/unknown-fields.ts';
import { HOT_METHODS, QUERY_NUMBERS } from '../../src/gateway/hot/hot-methods.ts';
import { scanJsonQuery } from '../../src/gateway/hot/scan/json-scope.ts';
import { IN_SCOPE, scanProtoQuery } from '../../src/gateway/hot/scan/proto-scope.ts';
import { createScopeScan } from '../../src/gateway/hot/scan/scope-scan.ts';
import { QueryScopeSchema, QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import type { QueryScope } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import type { RawScope, WireFormat } from '../../src/protocol/shard-client.ts';
import { isQuery } from '../../src/requests/decode-request.ts';
import { QUERY_METHODS } from '../../src/requests/query-methods.ts';

const RUNS = 3_000 * Number(process.env['FUZZ_RUNS'] ?? 1);
const scan = createScopeScan();
const decoder = new MessageDecoder();
const methods = HOT_METHODS.flatMap(({ method, scan: ofMethod }) =>
  isQuery(method) ? [{ method, scan: ofMethod, desc: QUERY_METHODS[method].request }] : [],
);
type Hot = (typeof methods)[number];
type Read = Omit<RawScope, 'modelVersion'> & { readonly modelVersion: bigint };

function scanned({ scan: ofMethod }: Hot, format: WireFormat, body: Uint8Array): Read | false {
  if (!ofMethod[format](Buffer.from(body), scan)) return false;
  const { projectId, tenantId, token, modelVersion, namesSet } = scan;
  expect(namesSet).toBe(false);
  return { projectId, tenantId, token, modelVersion: BigInt(modelVersion) };
}

/** What a worker decodes; false where it refuses the body. */
function decoded(desc: DescMessage, format: WireFormat, body: Uint8Array): Read | false {
  try {
    const begun = decoder.begin(desc, format === 'proto', body, { ignoreUnknownFields: false });
    let message = begun;
    if ('next' in begun) {
      let step = begun.next();
      while (step.done !== true) step = begun.next();
      message = step.value;
    }
    assertNoUnknownFields(message as Parameters<typeof assertNoUnknownFields>[0]);
    const { scope } = message as unknown as { readonly scope?: QueryScope };
    const { projectId = '', tenantId = '', atLeastConsistencyToken: token = '' } = scope ?? {};
    return { projectId, tenantId, token, modelVersion: scope?.modelVersion ?? 0n };
  } catch {
    return false;
  }
}

/** Compares both, and says whether both have read it. */
function compared(hot: Hot, format: WireFormat, body: Uint8Array): boolean {
  const found = scanned(hot, format, body);
  const wanted = decoded(hot.desc, format, body);
  if (found === false || wanted === false) return false;
  const shown =
    format === 'json' ? Buffer.from(body).toString() : Buffer.from(body).toString('hex');
  expect(found, `${hot.method} ${shown}`).toEqual(wanted);
  return true;
}

const value = fc.constantFrom(
  '""',
  '"p"',
  '"t1"',
  '"\\u0074"',
  '"é"',
  '"]}"',
  '"\\",\\"scope\\":{"',
  'null',
  '7',
);
const scopeMember = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(
        'project_id',
        'projectId',
        'tenant_id',
        'tenantId',
        'tenant\\u005fid',
        'at_least_consistency_token',
      ),
      value,
    )
    .map(([name, text]) => `"${name}":${text}`),
  fc.constantFrom(
    '"context":{"scope":{"tenant_id":"x"},"a":[1,{"b":"]"}]}',
    '"context":null',
    '"context":{"tenant_id":"x"}',
    '"contextual_tuples":[{"namespace":"a]","tenant_id":"x"}]',
    '"contextualTuples":[]',
    '"userset_mode":"USERSET_MODE_EXACT"',
    '"userset_mode":2',
    '"model_version":null',
    '"model_version":"3"',
    '"model_version":17',
    '"model\\u005fversion":4294967296',
    '"modelVersion":0',
    '"modelVersion":"0"',
    '"modelVersion":"007"',
    '"modelVersion":999999999',
    '"modelVersion":1234567890',
    '"modelVersion":3.0',
    '"modelVersion":3e0',
    '"modelVersion":-3',
    '"modelVersion":""',
    '"modelVersion":"3',
    '"modelVersion":"\\u0033"',
  ),
);
const scopeText = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.uniqueArray(scopeMember, { maxLength: 4 }).map((all) => `{${all.join(',')}}`),
  },
  fc.constantFrom('null', '{}', ' { } ', '[]', '"x"', '{"tenant_id":"t"'),
);
const restMember = fc.constantFrom(
  '"items":[]',
  '"items":[{"context":{"scope":{"tenant_id":"x"}}}]',
  '"items":[{"question":{"object_id":"],\\"scope\\":{"}}]',
  '"object_ids":["a","]}","\\"scope\\""]',
  '"objectIds":[]',
  '"question":{"namespace":"scope","subject":{"user_id":"u"}}',
  '"remedies_max":3',
  '"namespace":"scope"',
  '"object_id":"tenant_id"',
  '"relation":"r"',
  '"relations":["a","scope"]',
  '"subject":{"set":{"namespace":"n"}}',
  '"tenant_id":"x"',
);
const jsonText = fc
  .tuple(
    fc.array(
      fc.oneof(
        restMember,
        scopeText.map((text) => `"scope":${text}`),
      ),
      { maxLength: 3 },
    ),
    fc.option(
      scopeText.map((text) => `"sc\\u006fpe":${text}`),
      { nil: undefined, freq: 8 },
    ),
    fc.constantFrom('', '', ' ', '\n'),
  )
  .map(([members, last, space]) => {
    const all = last === undefined ? members : [...members, last];
    return `${space}{${all.join(`${space},${space}`)}${space}}`;
  });

const bytesOf = (number: number, wireType: number, content: readonly number[]): number[] =>
  wireType === 2
    ? [(number << 3) | 2, content.length, ...content]
    : [(number << 3) | wireType, ...content];
const text = fc.constantFrom<readonly number[]>(
  [],
  [0x70],
  [0x74, 0x31],
  [0xc3, 0xa9],
  [0xc3, 0x28],
);
const scopeField = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 3 }), text)
      .map(([n, bytes]) => bytesOf(n, 2, bytes)),
  },
  fc.constantFrom<readonly number[]>(
    bytesOf(4, 2, []),
    bytesOf(5, 2, [0x12, 1, 0x78]),
    bytesOf(6, 0, [3]),
    bytesOf(6, 0, [0]),
    bytesOf(6, 0, [0x83, 0]),
    bytesOf(6, 0, [0xff, 0xff, 0xff, 0x7f]),
    bytesOf(6, 0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    bytesOf(6, 2, [3]),
    bytesOf(6, 0, [0x80, 0x80, 0x80, 0x80, 0x10]),
    bytesOf(7, 0, [2]),
    bytesOf(7, 0, [0x82, 0]),
    bytesOf(2, 0, [2, 0x74, 0x31]),
    bytesOf(9, 2, [1]),
  ),
);
const binary = fc
  .array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.array(scopeField, { maxLength: 4 }).map((all) => bytesOf(1, 2, all.flat())),
      },
      fc.constantFrom<readonly number[]>(
        bytesOf(2, 2, []),
        bytesOf(2, 2, [0x0a, 1, 0x6e]),
        bytesOf(3, 0, [7]),
        bytesOf(3, 2, [0x72]),
        bytesOf(4, 2, []),
        bytesOf(5, 2, [0x61]),
      ),
    ),
    { maxLength: 5 },
  )
  .map((fields) => Uint8Array.from(fields.flat()));
const damage = fc.option(fc.tuple(fc.nat(), fc.nat(255)), { nil: undefined, freq: 3 });

function damaged(body: Uint8Array, by: [number, number] | undefined): Uint8Array {
  const bytes = Uint8Array.from(body);
  if (by !== undefined && bytes.length > 0) bytes[by[0] % bytes.length] = by[1];
  return bytes;
}

describe.each(methods)('$method', (hot) => {
  test.each([
    ['JSON', 'json', jsonText.map((one) => Uint8Array.from(Buffer.from(one)))],
    ['protobuf', 'proto', binary],
  ] as const)('in %s', (_name, format, bodies) => {
    let both = 0;
    fc.assert(
      fc.property(bodies, damage, (body, by) => {
        if (compared(hot, format, damaged(body, by))) both += 1;
      }),
      { numRuns: RUNS },
    );
    expect(both).toBeGreaterThan(RUNS / 20);
  });
});

test.each([
  ['{"scope":{"project_id":"p","tenant_id":"t","at_least_consistency_token":"x"}}', 'p', 't', 'x'],
  ['{"question":{},"scope":{"tenantId":"t"}}', '', 't', ''],
  ['{"items":[{"a":"]"}],"scope":{"tenant_id":"t"}}', '', 't', ''],
  ['{"items":[{}],"scope":{"context":{"a":[1]},"tenant_id":"t"}}', '', 't', ''],
  ['{"scope":{"context":{"a":[1]},"tenant_id":"t"},"items":[{}]}', '', 't', ''],
  ['{"scope":null}', '', '', ''],
  ['\uFEFF{"sc\\u006fpe":{}}', '', '', ''],
])('reads %s', (body, projectId, tenantId, token) => {
  expect(scanJsonQuery(Buffer.from(body), scan)).toBe(true);
  expect(scan).toEqual({ projectId, tenantId, token, modelVersion: 0, namesSet: false });
});

test.each([
  ['{"scope":{"model_version":"12"}}', 12],
  ['{"scope":{"modelVersion": 12 ,"tenant_id":""}}', 12],
  ['{"scope":{"model_version":"0"}}', 0],
  ['{"scope":{"model_version":null}}', 0],
  ['{"scope":{"model_version":999999999}}', 999_999_999],
  ['{"scope":{"model_version":1234567890}}', undefined],
  ['{"scope":{"model_version":"012"}}', undefined],
  ['{"scope":{"model_version":1.0}}', undefined],
  ['{"scope":{"model_version":-1}}', undefined],
  ['{"scope":{"model_version":""}}', undefined],
  ['{"scope":{"model_version":"1', undefined],
  ['{"scope":{"model_version":1', undefined],
  ['{"scope":{"model_version":1,"modelVersion":2}}', undefined],
])('reads the version of %s', (body, version) => {
  const isRead = scanJsonQuery(Buffer.from(body), scan);
  expect(isRead ? scan.modelVersion : undefined).toBe(version);
});

test('reads the scope of long batches, before their items and behind them', () => {
  const items = `"items":[{"question":{"object_id":"${'x'.repeat(70_000)}"}}]`;
  for (const body of [
    `{"scope":{"tenant_id":"t"},${items}}`,
    `{${items},"scope":{"tenant_id":"t"}}`,
  ]) {
    expect(scanJsonQuery(Buffer.from(body), scan)).toBe(true);
    expect(scan.tenantId).toBe('t');
  }
  // Not what lies behind a list of the scope's own: it may be a part of it.
  const behind = `{${items},"scope":{"contextual_tuples":[],"tenant_id":"t"}}`;
  expect(scanJsonQuery(Buffer.from(behind), scan)).toBe(false);
});

test('reads few names of a scope that is full of wrong ones', () => {
  const parses = vi.spyOn(JSON, 'parse');
  const member = String.raw`"\q":1,`;
  const body = `{"scope":{${member.repeat(9_000)}"x":1}}`;
  expect(scanJsonQuery(Buffer.from(body), scan)).toBe(false);
  expect(parses.mock.calls.length).toBeLessThan(20);
  parses.mockRestore();
});

test('the numbers are those of the messages', () => {
  const numberOf = (name: string) =>
    QueryScopeSchema.fields.find((one) => one.localName === name)?.number;
  expect(Object.values(IN_SCOPE)).toEqual(
    ['projectId', 'tenantId', 'atLeastConsistencyToken', 'modelVersion', 'usersetMode'].map(
      numberOf,
    ),
  );
  expect(QueryScopeSchema.fields.map(({ number }) => number).toSorted((a, b) => a - b)).toEqual([
    1, 2, 3, 4, 5, 6, 7,
  ]);
  for (const [name, { last, number }] of Object.entries(QUERY_NUMBERS)) {
    const { fields = [] } = QueryService.methods.find((one) => one.name === name)?.input ?? {};
    expect([name, fields.map((one) => one.number)]).toEqual([
      name,
      Array.from({ length: last }, (_, i) => i + 1),
    ]);
    expect([name, fields.find((one) => one.name === 'scope')?.number]).toEqual([name, 1]);
    const numbers = fields.filter(
      (one) =>
        one.scalar !== undefined && one.fieldKind === 'scalar' && one.scalar !== ScalarType.STRING,
    );
    expect([name, numbers.map((one) => one.number)]).toEqual([name, number === 0 ? [] : [number]]);
  }
});

test('fields of the scope of which there are too many are left to the general path', () => {
  const scope = (count: number) => Buffer.alloc(count * 2, Buffer.from([0x0a, 0]));
  const within = (inner: Buffer) => {
    const head = [0x0a];
    for (let rest = inner.length; ; rest >>>= 7) {
      head.push(rest > 127 ? (rest & 127) | 128 : rest);
      if (rest <= 127) break;
    }
    return Buffer.concat([Buffer.from(head), inner]);
  };
  const numbers = QUERY_NUMBERS.Check;
  expect(scanProtoQuery(within(scope(65_536)), numbers, scan)).toBe(true);
  expect(scanProtoQuery(within(scope(65_537)), numbers, scan)).toBe(false);
});
