import { expect, test } from 'vitest';
import { createLogger } from '../../observability/logger.ts';
import { createAuditLog, type TupleAuditRecord } from './audit-log.ts';

const RECORD: TupleAuditRecord = {
  kind: 'tuple_operation',
  operation: 'insert',
  project_id: 'default',
  tenant_id: '',
  seq: 7,
  ordinal: 0,
  namespace: 'doc',
  object_id: 'a\nb',
  relation: 'viewer',
  subject: 'user:alice',
  rpc: 'WriteRelationTuples',
  request_id: 'r1',
  at: '2026-01-02T03:04:05.000Z',
};

test('audit records are written whatever the log level is', () => {
  let text = '';
  const logger = createLogger('error', { write: (line) => (text += line) });
  logger.info('quiet');
  createAuditLog(logger).write(RECORD);
  const { time, ...rest } = JSON.parse(text) as Record<string, unknown>; // one line
  expect(rest).toEqual({ level: 'info', event: 'audit', msg: 'audit', ...RECORD });
  expect(time).toBeTypeOf('string');
});
