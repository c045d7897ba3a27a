import { expect, test } from 'vitest';
import { malformedJson } from '../../decoding/malformed-message.ts';
import {
  CheckRequestSchema,
  WriteRelationTuplesRequestSchema,
} from '../../gen/workspace/v1/authz_service_pb.ts';
import { internalError } from '../../http/connect/protocol/call-errors.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  codeNameOfReason,
  connectErrorFromAppError,
  errorBody,
  httpStatusOfReason,
} from './connect-error.ts';

test('the statuses of the contract', () => {
  const rows = [
    ['CREDENTIAL_INVALID', 'unauthenticated', 401],
    ['FIELD_INVALID', 'invalid_argument', 400],
    ['ADMIN_SECRET_INVALID', 'permission_denied', 403],
    ['ADMIN_DISABLED', 'unimplemented', 501],
    ['PROJECT_UNKNOWN', 'not_found', 404],
    ['PROJECT_EXISTS', 'already_exists', 409],
    ['PROJECT_SUSPENDED', 'failed_precondition', 412],
    ['BUDGET_EXHAUSTED', 'resource_exhausted', 429],
    ['BODY_TOO_LARGE', 'resource_exhausted', 429],
    ['SHARD_UNAVAILABLE', 'unavailable', 503],
    ['DEADLINE_EXCEEDED', 'deadline_exceeded', 504],
    ['METHOD_UNKNOWN', 'unimplemented', 404],
    ['INTERNAL', 'internal', 500],
  ] as const;
  for (const [reason, code, status] of rows) {
    expect([reason, codeNameOfReason(reason), httpStatusOfReason(reason)]).toEqual([
      reason,
      code,
      status,
    ]);
  }
});

test('INTERNAL never carries its own text', () => {
  const error = new AppError('INTERNAL', 'password=hunter2', {}, new Error('hunter2'));
  expect(errorBody(error)).not.toContain('hunter2');
  expect(connectErrorFromAppError(error).rawMessage).toBe('internal error');
});

test.each([new Error('secret'), 'secret', undefined, null, { secret: 1 }])(
  'unforeseen %o becomes INTERNAL with the original as its cause',
  (thrown) => {
    const error = internalError(thrown);
    expect(error).toMatchObject({ reason: 'INTERNAL', message: 'internal error' });
    expect(error.cause).toBe(thrown);
  },
);

test('malformed JSON names the field, the key, or the only field of the type', () => {
  const field = (text: string): string | undefined =>
    malformedJson(text, new Error(text), CheckRequestSchema).metadata['field'];
  expect(field('cannot decode field workspace.v1.CheckRequest.namespace from JSON: x')).toBe(
    'namespace',
  );
  expect(field('cannot decode message a.B from JSON: key "nonsense" is unknown')).toBe('nonsense');
  expect(field('cannot decode message google.protobuf.Struct from JSON 5')).toBe('context');
  expect(field('cannot decode google.protobuf.Value from JSON: maximum depth')).toBe('context');
  expect(field('cannot decode message a.B from JSON: Unexpected end')).toBeUndefined();
  const op = new Error('cannot decode enum workspace.v1.TupleUpdate.Op from JSON: "OP_NOPE"');
  expect(malformedJson(op.message, op, WriteRelationTuplesRequestSchema).message).toMatch(
    /^updates\.op: /,
  );
});
