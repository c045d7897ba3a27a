import { expect, test } from 'vitest';
import { packChanges } from '../../model/packed-changes.ts';
import type { Subject } from '../../model/relation-tuple.ts';
import { createAuditSink } from './audit-sink.ts';

test('records write a subject so that each has a text of its own', () => {
  const subjects: readonly Subject[] = [
    { kind: 'user', userId: 'alice' },
    { kind: 'wildcard' },
    { kind: 'wildcardOf', namespace: 'employee' },
    { kind: 'set', namespace: 'employee', objectId: '*', relation: '' },
    { kind: 'set', namespace: 'team', objectId: 't', relation: 'member' },
  ];
  const changes = subjects.map((subject) => ({
    op: 'insert' as const,
    tuple: { namespace: 'doc', objectId: 'd', relation: 'viewer', subject },
  }));
  const written: unknown[] = [];
  const sink = createAuditSink({
    write: (record) => void written.push((record as { subject?: string }).subject),
  });
  sink.tuplesChanged([
    {
      projectId: 'p',
      tenantId: '',
      epoch: 1,
      revision: 1,
      forkId: '1',
      changes: packChanges(changes),
      rpc: 'WriteRelationTuples',
      actingUserId: null,
      requestId: 'r',
      atMs: 0,
    },
  ]);
  expect(written).toEqual(['user:alice', '*', 'employee:*', 'employee:*#', 'team:t#member']);
});
