import { ScalarType } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { DECISION_NUMBERS } from '../../src/gateway/hot/hot-methods.ts';
import { scanProtoScope } from '../../src/gateway/hot/scan/proto-scope.ts';
import { createScopeScan } from '../../src/gateway/hot/scan/scope-scan.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';

const scan = createScopeScan();
const numbers = { subjectSet: 0, projectId: 1, tenantId: 2, token: 3 };
const of = (projectId: string, tenantId: string, token = '') => ({
  projectId,
  tenantId,
  token,
  modelVersion: 0,
  namesSet: false,
});
const tenant = [0x12, 1, 0x74];
const ones = (count: number): number[] => Array.from({ length: count }, () => 0xff);
const over = (count: number): number[] => Array.from({ length: count }, () => 0x80);
function scanBytes(...bytes: readonly number[]): object | false {
  return scanProtoScope(Buffer.from(bytes), numbers, scan) ? { ...scan } : false;
}

test('ends on any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60, size: 'max' }), (bytes) => {
      scanBytes(...bytes);
    }),
    { numRuns: 1000 * Number(process.env['FUZZ_RUNS'] ?? 1) },
  );
});

test('finds a field whose tag is long', () => {
  const body = Buffer.from([0x3a, 1, 0x7a, 0x0a, 1, 0x70, 0xe2, 0x12, 1, 0x78]);
  expect(scanProtoScope(body, { ...numbers, token: 300 }, scan)).toBe(true);
  expect(scan).toEqual(of('p', '', 'x'));
});

test.each([
  ['nothing', [], of('', '')],
  ['an empty field', [0x12, 0], of('', '')],
  ['a field of the project', [0x0a, 1, 0x70, ...tenant], of('p', 't')],
  ['any ASCII', [0x12, 3, 0x00, 0x1f, 0x7f], of('', '\0\u001f\u007f')],
  ['text beyond ASCII', [0x12, 5, 0xef, 0xbb, 0xbf, 0xc3, 0xa9], of('', '\ufeffé')],
  ['the last of several', [0x12, 1, 0x78, 0x1a, 1, 0x79, ...tenant], of('', 't', 'y')],
  ['an empty one as the last', [...tenant, 0x12, 0], of('', '')],
  ['a field by its length, whatever its wire type', [0x10, 1, 0x74, 0x0c, 0], of('', 't')],
  ['a tag of five bytes', [0x92, 0x80, 0x80, 0x80, 0, 1, 0x74], of('', 't')],
  ['a length of ten bytes', [0x12, 0x81, ...over(8), 0, 0x74], of('', 't')],
  ['a length whose low bits count', [0x12, 0x81, 0x80, 0x80, 0x80, 0x70, 0x74], of('', 't')],
] as const)('reads %s', (_what, bytes, wanted) => {
  expect(scanBytes(0x12, 1, 0x78)).toEqual(of('', 'x'));
  expect(scanBytes(...bytes)).toEqual(wanted);
});

test('reads a value of 512 bytes, and gives up beyond', () => {
  const value = (length: number) => [0x12, (length & 0x7f) | 0x80, length >> 7];
  const body = (length: number) => [...value(length), ...Buffer.alloc(length, 0x74)];
  expect(scanBytes(...body(512))).toEqual(of('', 't'.repeat(512)));
  expect(scanBytes(...body(513))).toBe(false);
});

test.each([
  ['field number 0', [0x02, 0x00]],
  ['a field that the message has not', [0x22, 1, 0x78, ...tenant]],
  ['a number that the message has not', [...tenant, 0x20, 0]],
  ['a group', [0x23, 0x24, ...tenant]],
  ['a length beyond the body', [0x0a, ...ones(4), 0x7f]],
  ['a length of eleven bytes', [0x12, ...over(10), 0]],
  ['a tag of six bytes', [0x92, ...over(4), 0, 1, 0x74]],
  ['a tag of 33 bits', [0x92, ...over(3), 0x10, 1, 0x74]],
  ['an open tag', [0x80]],
  ['an open length', [0x12, 0x80]],
  ['no length', [0x12]],
  ['a kind of field that there is not', [0x16, 1, 0x74, ...tenant]],
  ['a value that ends early', [0x12, 2, 0x74]],
  ['a value that is no UTF-8', [0x12, 2, 0xc3, 0x28]],
] as const)('gives up on %s', (_what, bytes) => {
  expect(scanBytes(...bytes)).toBe(false);
});

test('a value that comes fifty thousand times becomes one text', () => {
  const texts = vi.spyOn(Buffer.prototype, 'toString');
  const body = Buffer.alloc(200_000, Buffer.from([0x0a, 2, 0xc3, 0xa9]));
  expect(scanProtoScope(body, numbers, scan)).toBe(true);
  expect(texts).toHaveBeenCalledOnce();
  texts.mockRestore();
  expect(scan).toEqual(of('é', ''));
});

test('gives up on more fields than a batch can have items', () => {
  const fields = (count: number): Buffer => Buffer.alloc(count * 2, Buffer.from([0x0a, 0]));
  expect(scanProtoScope(fields(65_536), numbers, scan)).toBe(true);
  expect(scanProtoScope(fields(65_537), numbers, scan)).toBe(false);
});

test('says of a Check whether it asks for a userset', () => {
  const withSet = { ...numbers, subjectSet: 3, token: 4 };
  expect(scanProtoScope(Buffer.from([0x1a, 0, ...tenant]), withSet, scan)).toBe(true);
  expect(scan.namesSet).toBe(true);
  expect(scanProtoScope(Buffer.from(tenant), withSet, scan)).toBe(true);
  expect(scan.namesSet).toBe(false);
});

test.each(Object.entries(DECISION_NUMBERS))(
  'every field of %s up to its token is a text or a message, and none comes behind it',
  (rpc, { projectId, tenantId, token }) => {
    const { fields = [] } = AuthzService.methods.find(({ name }) => name === rpc)?.input ?? {};
    expect(fields.map(({ number }) => number).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: token }, (_, i) => i + 1),
    );
    for (const { message, scalar } of fields) {
      expect(message !== undefined || scalar === ScalarType.STRING).toBe(true);
    }
    const nameOf = (number: number) => fields.find((one) => one.number === number)?.localName;
    expect([projectId, tenantId, token].map(nameOf)).toEqual([
      'projectId',
      'tenantId',
      'atLeastConsistencyToken',
    ]);
  },
);
