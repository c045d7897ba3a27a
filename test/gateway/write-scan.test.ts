import { describe, expect, test } from 'vitest';
import { scanWrite } from '../../src/gateway/hot/scan/write-scan.ts';
import { libraryReading, updatesOf } from '../decoding/library-readings.ts';

/** What protobuf's own reader makes of the same text, in the scan's terms; null where it refuses. */
function read(text: string): unknown {
  const request = libraryReading('write', true, Buffer.from(text));
  if (request === null || !('updates' in request)) return null;
  const { projectId, tenantId } = request;
  return { projectId, tenantId, updates: updatesOf(request) };
}

describe('scanWrite', () => {
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
