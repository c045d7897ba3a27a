import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createScopeScan, scanJsonScope, scanProtoScope } from './scope-scan.ts';

const scan = createScopeScan();

function scanText(text: string): object | false {
  return scanJsonScope(Buffer.from(text), scan) ? { ...scan } : false;
}

test('a new scan has found nothing', () => {
  expect(createScopeScan()).toEqual({ projectId: '', tenantId: '', token: '' });
});

describe('scanJsonScope', () => {
  test('finds the scope in either spelling and anywhere on the top level', () => {
    expect(scanText('{"project_id":"p","tenant_id":"t","at_least_consistency_token":"x"}')).toEqual(
      {
        projectId: 'p',
        tenantId: 't',
        token: 'x',
      },
    );
    expect(scanText(' {\n"a" : {"project_id":"no"} , "projectId" : "p", "tenantId":"t" }')).toEqual(
      { projectId: 'p', tenantId: 't', token: '' },
    );
    expect(scanText('{"atLeastConsistencyToken":"x","n":-1.5e3,"l":[1,"]}",{}],"b":true}')).toEqual(
      {
        projectId: '',
        tenantId: '',
        token: 'x',
      },
    );
    expect(scanText('{}')).toEqual({ projectId: '', tenantId: '', token: '' });
  });

  test('skips the items by the last bracket', () => {
    expect(scanText('{"items":[{"object_id":"]"},{"tenant_id":"no"}],"tenant_id":"t"}')).toEqual({
      projectId: '',
      tenantId: 't',
      token: '',
    });
  });

  test.each([
    ['', 'nothing'],
    ['[]', 'an array'],
    ['{', 'an open object'],
    ['{"project_id":"a","project_id":"a"}', 'a key twice'],
    ['{"project_id":"a","projectId":"a"}', 'both spellings'],
    ['{"project\\u005fid":"a"}', 'an escaped key'],
    ['{"tenant_id":"\\u0061"}', 'an escaped value'],
    ['{"tenant_id":"é"}', 'a value beyond ASCII'],
    ['{"tenant_id":null}', 'null'],
    ['{"tenant_id":7}', 'a number'],
    ['{"tenant_id":"a', 'an open string'],
    ['{"tenant_id" "a"}', 'no colon'],
    ['{"items":[', 'an open list'],
    ['{"x":"\\', 'an open escape'],
  ])('gives up on %s', (text) => {
    expect(scanText(text)).toBe(false);
  });

  test('without items it reads what a full parse reads, or gives up', () => {
    const key = fc.oneof(
      fc.constantFrom('project_id', 'tenant_id', 'at_least_consistency_token', 'context'),
      fc.string(),
    );
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue({ maxDepth: 3 })),
        fc.boolean(),
        (value, pretty) => {
          const text = JSON.stringify(value, null, pretty ? 1 : undefined);
          if (!scanJsonScope(Buffer.from(text), scan)) return;
          const parsed = JSON.parse(text) as Record<string, unknown>;
          expect(scan.projectId).toBe(parsed['project_id'] ?? '');
          expect(scan.tenantId).toBe(parsed['tenant_id'] ?? '');
          expect(scan.token).toBe(parsed['at_least_consistency_token'] ?? '');
        },
      ),
      { numRuns: 1000 * Number(process.env['FUZZ_RUNS'] ?? 1) },
    );
  });

  test('ends on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60, size: 'max' }), (bytes) => {
        scanJsonScope(Buffer.from([0x7b, 0x22, ...bytes]), scan);
        scanProtoScope(Buffer.from(bytes), { projectId: 1, tenantId: 2, token: 3 }, scan);
      }),
      { numRuns: 1000 * Number(process.env['FUZZ_RUNS'] ?? 1) },
    );
  });
});

describe('scanProtoScope', () => {
  const numbers = { projectId: 1, tenantId: 2, token: 300 };
  const text = (number: number, value: string): number[] => {
    const tag = (number << 3) | 2;
    const head = tag < 128 ? [tag] : [(tag & 0x7f) | 0x80, tag >> 7];
    return [...head, value.length, ...Buffer.from(value)];
  };

  test('finds the fields by number', () => {
    const body = Buffer.from([...text(7, 'zz'), 0x28, 0x05, ...text(1, 'p'), ...text(300, 'x')]);
    expect(scanProtoScope(body, numbers, scan)).toBe(true);
    expect(scan).toEqual({ projectId: 'p', tenantId: '', token: 'x' });
  });

  test.each([
    ['a field twice', [...text(1, 'p'), ...text(1, 'p')]],
    ['a truncated field', text(1, 'pp').slice(0, -1)],
    ['a group', [0x0b]],
    ['a length beyond 31 bits', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['a value beyond ASCII', [0x0a, 0x02, 0xc3, 0xa9]],
    ['field number 0', [0x02, 0x00]],
  ])('gives up on %s', (_name, bytes) => {
    expect(scanProtoScope(Buffer.from(bytes), numbers, scan)).toBe(false);
  });
});

describe('the borders of what is plain', () => {
  const of = (projectId: string, tenantId: string, token = '') => ({ projectId, tenantId, token });

  test.each([
    ['{"tenant_id"\t:\r"t"\n, "project_id" :"p"}', of('p', 't')],
    [`{"tenant_id":"${'t'.repeat(511)}"}`, of('', 't'.repeat(511))],
    ['{"tenant_id":"a b~"}', of('', 'a b~')],
    ['{"tenantIx":"x","tenantId":"t"}', of('', 't')],
    ['{"projectIx":"x","tenantId":"t"}', of('', 't')],
    ['{"project_ix":"x","tenantId":"t"}', of('', 't')],
    ['{"atLeastConsistencyTokeX":"x","tenantId":"t"}', of('', 't')],
    ['{"at_least_consistency_tokeX":"x","tenantId":"t"}', of('', 't')],
    ['{"jtems":[1],"tenant_id":"t","x":[]}', of('', 't')],
    ['{"item":[1],"tenant_id":"t","x":[]}', of('', 't')],
    ['{"items2":[1],"tenant_id":"t","x":[]}', of('', 't')],
    ['{"items":1,"tenant_id":"t","x":[]}', of('', 't')],
    ['{"items":{},"tenant_id":"t","x":[]}', of('', 't')],
    // What is skipped up to the last bracket the worker reads, and says.
    ['{"items":[1],"tenant_id":"t","x":[]}', of('', '')],
    ['{"items":["[[[\\"{"],"tenant_id":"t"}', of('', 't')],
    ['{"x":"\\"}","tenant_id":"t"}', of('', 't')],
    ['{"x":{"tenant_id":"no","y":"}"},"tenant_id":"t"}', of('', 't')],
    ['{"x":true,"tenant_id":"t"}', of('', 't')],
    ['{"":1,"tenant_id":"t"}', of('', 't')],
  ])('%s', (text, wanted) => {
    expect(scanText(text)).toEqual(wanted);
  });

  test.each([
    `{"tenant_id":"${'t'.repeat(512)}"}`,
    '{"tenant_id":"\u001f"}',
    '{"tenant_id":"\u007f"}',
    '{"tenant_id":"t',
    '{"tenant_id":"t"',
    '{"tenant_id":"t";"project_id":"p"}',
    '{"tenant_id":"t""project_id":"p"}',
    '{"tenant_id";"t"}',
    '{tenant_id":"t"}',
    '{"x":"',
    '{"x":{',
    '{"x":"a\\',
    '{"items":[1,"tenant_id":"t"}',
    ']{"items":[1,"tenant_id":"t"}',
    'x{"tenant_id":"t"}',
    'x"tenant_id":"t"}',
    '{"tenant_id":7t"}',
    '{":\\}',
    '{"x":["',
    '{"x":[],"items":[1',
    '{"x":"a"7}',
    '{"x":[]7}',
    '{"tenant\u0001id":"t"}',
  ])('gives up on %j', (text) => {
    expect(scanText(text)).toBe(false);
  });

  const numbers = { projectId: 1, tenantId: 2, token: 3 };
  const scanBytes = (...bytes: number[]): object | false =>
    scanProtoScope(Buffer.from(bytes), numbers, scan) ? { ...scan } : false;
  const tenant = [0x12, 1, 0x74];

  test.each([
    ['nothing', [], of('', '')],
    ['an empty field', [0x12, 0], of('', '')],
    ['64 bits', [0x21, 1, 2, 3, 4, 5, 6, 7, 8, ...tenant], of('', 't')],
    ['32 bits', [0x25, 1, 2, 3, 4, ...tenant], of('', 't')],
    ['a scope field that is no text', [0x08, 0, ...tenant], of('', 't')],
    ['a varint of 0', [0x20, 0, ...tenant], of('', 't')],
    ['a varint of two bytes', [0x20, 0x80, 0x01, ...tenant], of('', 't')],
    ['a varint of 31 bits', [0x20, 0xff, 0xff, 0xff, 0xff, 0x07, ...tenant], of('', 't')],
    ['a field of the project', [0x0a, 1, 0x70, ...tenant], of('p', 't')],
    ['the borders of ASCII', [0x12, 2, 0x20, 0x7e], of('', ' ~')],
    ['a field that is none of them', [0x22, 2, 0xc3, 0xa9, ...tenant], of('', 't')],
  ] as const)('reads %s', (_what, bytes, wanted) => {
    expect(scanProtoScope(Buffer.from([0x12, 1, 0x78]), numbers, scan)).toBe(true);
    expect(scanBytes(...bytes)).toEqual(wanted);
  });

  test('reads a value of 512 bytes, and gives up beyond', () => {
    const value = (length: number) => [0x12, (length & 0x7f) | 0x80, length >> 7];
    const body = (length: number) => [...value(length), ...Buffer.alloc(length, 0x74)];
    expect(scanBytes(...body(512))).toEqual(of('', 't'.repeat(512)));
    expect(scanBytes(...body(513))).toBe(false);
  });

  test.each([
    ['a varint of 32 bits', [0x20, 0xff, 0xff, 0xff, 0xff, 0x08, ...tenant]],
    ['a varint of 64 bits', [0x20, ...Array.from({ length: 9 }, () => 0xff), 1, ...tenant]],
    ['a varint of 33 bits', [0x20, 0x80, 0x80, 0x80, 0x80, 0x10, ...tenant]],
    ['a varint of six bytes', [0x20, 0x80, 0x80, 0x80, 0x80, 0x80, 0, ...tenant]],
    ['a varint of five bytes and no end', [0x20, 0x80, 0x80, 0x80, 0x80, 0x80, ...tenant]],
    ['an open varint', [0x20, 0x80]],
    ['an open tag', [0x80]],
    ['an open length', [0x12, 0x80]],
    ['a length beyond 31 bits that could be a field', [0x12, 0x80, 0x80, 0x80, 0x80, 0x10, 0]],
    ['no length', [0x12]],
    ['64 bits that end early', [...tenant, 0x21, 1, 2, 3, 4, 5, 6, 7]],
    ['32 bits that end early', [...tenant, 0x25, 1, 2, 3]],
    ['an end of a group', [0x24, ...tenant]],
    ['a kind of field that there is not', [0x26, 1, 1, ...tenant]],
    ['a value below ASCII', [0x12, 1, 0x1f]],
    ['a value beyond ASCII', [0x12, 1, 0x7f]],
    ['a value that ends early', [0x12, 2, 0x74]],
  ] as const)('gives up on %s', (_what, bytes) => {
    expect(scanBytes(...bytes)).toBe(false);
  });
});
