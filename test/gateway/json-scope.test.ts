import { fromJsonString } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { scanJsonScope } from '../../src/gateway/hot/scan/json-scope.ts';
import { createScopeScan } from '../../src/gateway/hot/scan/scope-scan.ts';
import { BatchCheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import type { RawScope } from '../../src/protocol/shard-client.ts';

const scan = createScopeScan();

function scanned(text: string): RawScope | false {
  if (!scanJsonScope(Buffer.from(text), scan)) return false;
  const { projectId, tenantId, token } = scan;
  return { projectId, tenantId, token };
}

/** The scope that the library reads; false where it refuses the body. */
function library(text: string): RawScope | false {
  try {
    const request = fromJsonString(BatchCheckRequestSchema, text.replace(/^\uFEFF/, ''));
    const { projectId, tenantId, atLeastConsistencyToken: token } = request;
    return { projectId, tenantId, token };
  } catch {
    return false;
  }
}

const TRAPS = [
  'a]',
  'a],',
  'a] ,',
  'a]}',
  '],"project_id":"evil"',
  '"items":[',
  '\\',
  ']\\',
  '],\\',
  'a],}',
  '[]',
];
const ITEMS = [
  '[]',
  'null',
  '[{}]',
  '[{"object_id":"]"},{"relation":"tenant_id"}]',
  '[{"object_id":"\\"],\\"project_id\\":\\"x\\""}]',
  ' [ {"objectId":"items"} ] ',
];

describe('scanJsonScope', () => {
  test.each([
    ['{"project_id":"p","tenant_id":"t","at_least_consistency_token":"x"}', 'p', 't', 'x'],
    ['{"tenant_id"\t:\r"t"\n, "projectId" :"p"}', 'p', 't', ''],
    ['{"atLeastConsistencyToken":"x","items":[{"object_id":"]"}]}', '', '', 'x'],
    [' {"items":[{"object_id":"]"},{"relation":"r"}],"tenant_id":"t"} ', '', 't', ''],
    ['{"project\\u005fid":"p","tenant_id":"\\u0074"}', 'p', 't', ''],
    ['{"tenant_id":null,"project_id":"é"}', 'é', '', ''],
    ['\uFEFF{"tenant_id":"t"}', '', 't', ''],
    [`{"tenant_id":"${'t'.repeat(512)}"}`, '', 't'.repeat(512), ''],
    ['{ }', '', '', ''],
  ])('reads %s', (text, projectId, tenantId, token) => {
    expect(scanned(text)).toEqual({ projectId, tenantId, token });
    expect(library(text)).toEqual({ projectId, tenantId, token });
  });

  test('looks at no more than 64 KiB before and behind the items of a long body', () => {
    const space = (bytes: number): string => ' '.repeat(bytes);
    const item = `{"object_id":"${'x'.repeat(70_000)}"}`;
    const spaced = (before: number, behind: number): string =>
      `{"project_id":"p",${space(before)}"items":[${item}],"tenant_id":"t"${space(behind)}}`;
    const wanted = { projectId: 'p', tenantId: 't', token: '' };
    expect(scanned(spaced(60_000, 60_000))).toEqual(wanted);
    expect(scanned(spaced(70_000, 0))).toBe(false);
    expect(scanned(spaced(0, 70_000))).toBe(false);
    // What lies behind is not taken for the end.
    expect(scanned(`{"tenant_id":"t"}${space(70_000)}`)).toBe(false);
    expect(scanned(`{"tenant_id":"t"}${space(70_000)}x`)).toBe(false);
  });

  test('says of a Check whether it asks for a userset', () => {
    for (const [text, namesSet] of [
      ['{"subject_set":{"namespace":"group"},"tenant_id":"t"}', true],
      ['{"subjectSet":{}}', true],
      ['{"tenant_id":"t"}', false],
    ] as const) {
      expect(scanned(text)).not.toBe(false);
      expect(scan.namesSet).toBe(namesSet);
    }
  });

  test.each([
    '',
    '[]',
    '{',
    'x{"tenant_id":"t"}',
    '{tenant_id":"t"}',
    '{"tenant_id" "a"}',
    '{"tenant_id";"t"}',
    '{"tenant_id":"t',
    '{"tenant_id":"t"',
    '{"tenant_id":"t";"project_id":"p"}',
    '{"tenant_id":"t""project_id":"p"}',
    '{"tenant_id":"t"} {}',
    '{"tenant_id":"t"}}',
    '{"tenant_id":7}',
    '{"tenant_id":nul}',
    '{"tenant_id":{"a":"t"}}',
    '{"tenant_id":"\\x"}',
    '{"project_id":"a","project_id":"a"}',
    '{"project_id":"a","projectId":"a"}',
    '{"items":[',
    '{"x":[],"items":[',
    '{"items":[1,"tenant_id":"t"}',
    '{"x":"\\',
    '{"x":["',
    '{":\\}',
  ])('refuses %j, as the library does', (text) => {
    expect(scanned(text)).toBe(false);
    expect(library(text)).toBe(false);
  });

  test('refuses a value of more than 512 characters, whatever it says', () => {
    expect(scanned(`{"tenant_id":"${'t'.repeat(513)}"}`)).toBe(false);
    expect(scanned(`{"tenant_id":"${'\\u0074'.repeat(512)}"}`)).toMatchObject({
      tenantId: 't'.repeat(512),
    });
  });

  test('reads what the library reads, wherever the items stand and whatever values hold', () => {
    const value = fc.oneof(
      fc.constantFrom(...TRAPS),
      fc.constantFrom('', 'acme', 'items', 'project_id'),
      fc.string({ maxLength: 6 }),
    );
    const spelled = fc.tuple(value, fc.boolean()).map(([text, isEscaped]) => {
      const json = JSON.stringify(text);
      return isEscaped ? json.replace('a', '\\u0061') : json;
    });
    const member = fc.oneof(
      fc.constantFrom(...ITEMS).map((items) => `"items":${items}`),
      fc
        .tuple(
          fc.constantFrom('project_id', 'projectId', 'tenant_id', 'at_least_consistency_token'),
          spelled,
        )
        .map(([name, text]) => `"${name}":${text}`),
    );
    const space = fc.constantFrom('', '', ' ', '\n');
    let accepted = 0;
    fc.assert(
      fc.property(fc.uniqueArray(member, { maxLength: 4 }), space, (members, gap) => {
        const text = `{${gap}${members.join(`${gap},${gap}`)}${gap}}`;
        const wanted = library(text);
        if (wanted === false) return;
        accepted++;
        expect(scanned(text), text).toEqual(wanted);
      }),
      { numRuns: 3_000 * Number(process.env['FUZZ_RUNS'] ?? 1) },
    );
    expect(accepted).toBeGreaterThan(500);
  });

  test.each([
    ['names that are no JSON', String.raw`"\q":,`],
    ['names with escapes', String.raw`"\n":1,`],
    ['escaped names that it has', String.raw`"tenant\u005fid":"a",`],
    ['values with escapes', String.raw`"tenant_id":"\u0061",`],
  ])('reads few of a body full of %s', (_what, member) => {
    const parses = vi.spyOn(JSON, 'parse');
    for (const end of ['"x":1}', '"x":1}]', '']) {
      const text = `{${member.repeat(100_000)}${end}`;
      expect(scanJsonScope(Buffer.from(text), scan)).toBe(false);
    }
    expect(parses.mock.calls.length).toBeLessThan(20);
    parses.mockRestore();
  });

  test('skips no items of a long body but those that end at its last bracket', () => {
    const long = ' '.repeat(70_000);
    expect(scanned(`{"items":[{}${long}],"tenant_id":"t"}`)).toMatchObject({ tenantId: 't' });
    expect(scanned(`{"items":[{}${long}],"tenant_id":"]"}`)).toBe(false);
    expect(scanned(`{"items":[{}],"tenant_id":"]"}`)).toMatchObject({ tenantId: ']' });
    expect(scanned(`{"context":{}${long},"tenant_id":"t"}`)).toBe(false);
  });

  test('ends on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60, size: 'max' }), (bytes) => {
        scanJsonScope(Buffer.from([0x7b, 0x22, ...bytes]), scan);
      }),
      { numRuns: 1_000 * Number(process.env['FUZZ_RUNS'] ?? 1) },
    );
  });
});
