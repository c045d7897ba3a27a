import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createScopeScan, scanJsonScope, scanProtoScope } from './scope-scan.ts';

const scan = createScopeScan();

function scanText(text: string): object | false {
  return scanJsonScope(Buffer.from(text), scan) ? { ...scan } : false;
}

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
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
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
