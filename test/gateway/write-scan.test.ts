import { fromJsonString } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scanWrite } from '../../src/gateway/hot/write-scan.ts';
import { WriteRelationTuplesRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { anyCharacter } from '../support/any-text.ts';

/** What protobuf's own reader makes of the same text, in the scan's terms; null where it refuses. */
function read(text: string): unknown {
  try {
    const { projectId, tenantId, updates } = fromJsonString(WriteRelationTuplesRequestSchema, text);
    return {
      projectId,
      tenantId,
      updates: updates.map(({ op, tuple }) => ({ op, tuple: tuple && tupleOf(tuple) })),
    };
  } catch {
    return null;
  }
}

type ReadTuple = NonNullable<
  ReturnType<
    typeof fromJsonString<typeof WriteRelationTuplesRequestSchema>
  >['updates'][number]['tuple']
>;

function tupleOf(tuple: ReadTuple): unknown {
  const { projectId, tenantId, namespace, objectId, relation, subject } = tuple;
  const kind = subject?.kind;
  const set = kind?.case === 'set' ? kind.value : undefined;
  const value =
    set === undefined
      ? kind?.value
      : { namespace: set.namespace, objectId: set.objectId, relation: set.relation };
  return {
    projectId,
    tenantId,
    namespace,
    objectId,
    relation,
    subject: subject && { kind: { case: kind?.case, value } },
  };
}

const text = fc.oneof(
  fc.constantFrom('', 'doc', 'viewer', 'a long name that is not kept within a pointer'),
  fc.string({ maxLength: 8 }),
  fc.string({ unit: anyCharacter, maxLength: 4 }),
);
const subject = fc.oneof(
  fc.record({ user_id: text }),
  fc.record({ userId: text }),
  fc.record({ wildcard: fc.constantFrom(true, false) }),
  fc.record({ wildcard_of: text }),
  fc.record({ wildcardOf: text }),
  fc.record({ wildcard_of: text, wildcard: fc.constant(true) }),
  fc.record(
    { set: fc.record({ namespace: text, object_id: text, relation: text }, { requiredKeys: [] }) },
    { requiredKeys: [] },
  ),
  fc.record({ user_id: text, wildcard: fc.constant(true) }),
);
const tuple = fc.record(
  {
    project_id: text,
    tenantId: text,
    namespace: text,
    object_id: text,
    objectId: text,
    relation: text,
    subject,
    condition_name: text,
    expires_at: fc.constantFrom('2030-01-01T00:00:00Z', 'never'),
  },
  { requiredKeys: [] },
);
const update = fc.record(
  { op: fc.constantFrom('OP_INSERT', 'OP_DELETE', 'OP_UNSPECIFIED', 'OP_OTHER', 1, 2), tuple },
  { requiredKeys: [] },
);
const request = fc.record(
  {
    project_id: text,
    projectId: text,
    tenant_id: text,
    updates: fc.array(update, { maxLength: 3 }),
    other: text,
  },
  { requiredKeys: [] },
);

describe('scanWrite', () => {
  test('what it reads is what protobuf reads', () => {
    let scanned = 0;
    const property = fc.property(request, fc.constantFrom(0, 1, 3), (message, space) => {
      const json = JSON.stringify(message, null, space);
      const found = scanWrite(Buffer.from(json));
      if (found === null) return;
      scanned++;
      expect(found).toEqual(read(json));
    });
    fc.assert(property, { numRuns: 20_000 });
    // Most are left out; if all were, nothing would be shown.
    expect(scanned).toBeGreaterThan(50);
  });

  test('what is broken anywhere is left to the general path, or read alike', () => {
    const plain = JSON.stringify({
      tenant_id: 't1',
      updates: [
        {
          op: 'OP_INSERT',
          tuple: {
            namespace: 'doc',
            object_id: 'd1',
            relation: 'viewer',
            subject: { set: { namespace: 'group', objectId: 'g1', relation: 'member' } },
          },
        },
        { op: 'OP_DELETE', tuple: { subject: { wildcard: true } } },
        { op: 'OP_INSERT', tuple: { subject: { wildcard_of: 'team' } } },
      ],
    });
    expect(scanWrite(Buffer.from(plain))).toEqual(read(plain));
    for (let at = 0; at < plain.length; at++) {
      for (const instead of [
        '',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        ' ',
        '\u0000',
        'x',
        '\u007f',
      ]) {
        const broken = plain.slice(0, at) + instead + plain.slice(at + 1);
        const found = scanWrite(Buffer.from(broken));
        if (found !== null) expect(found, broken).toEqual(read(broken));
      }
      expect(scanWrite(Buffer.from(plain.slice(0, at)))).toBeNull();
    }
  });

  test('members that come twice, in either spelling, are not read', () => {
    const twice = [
      '{"tenant_id":"a","tenant_id":"b"}',
      '{"tenant_id":"a","tenantId":"b"}',
      '{"updates":[{"tuple":{"object_id":"a","objectId":"b"}}]}',
      '{"updates":[{"tuple":{"subject":{"user_id":"a","user_id":"b"}}}]}',
    ];
    for (const json of twice) expect(scanWrite(Buffer.from(json)), json).toBeNull();
  });
});
