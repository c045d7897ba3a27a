import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { AppError } from '../../../shared/app-error.ts';
import { createConnectErrors } from './connect-errors.ts';

const errors = createConnectErrors({
  FIELD_INVALID: Code.InvalidArgument,
  STATE_WRONG: Code.FailedPrecondition,
  METHOD_UNKNOWN: Code.Unimplemented,
});

test('a reason of the table has its code, status, text and metadata', () => {
  const error = new AppError('STATE_WRONG', 'not now', { field: 'x' });
  expect(errors.codeNameOfReason('STATE_WRONG')).toBe('failed_precondition');
  expect(errors.httpStatusOfReason('STATE_WRONG')).toBe(412);
  expect(errors.httpStatusOfReason('METHOD_UNKNOWN')).toBe(404);
  const shown = errors.connectErrorFromAppError(error);
  expect([shown.code, shown.rawMessage]).toEqual([Code.FailedPrecondition, 'not now']);
  expect(shown.details).toMatchObject([
    {
      desc: ErrorInfoSchema,
      value: { reason: 'STATE_WRONG', domain: 'gatehouse', metadata: { field: 'x' } },
    },
  ]);
  expect(JSON.parse(errors.errorBody(error))).toMatchObject({
    code: 'failed_precondition',
    message: 'not now',
    details: [{ type: 'google.rpc.ErrorInfo', debug: { reason: 'STATE_WRONG' } }],
  });
});

test.each(['INTERNAL', 'OF_NOBODY', 'toString'])(
  'the reason %s, which the table does not have, says nothing of itself',
  (reason) => {
    const error = new AppError(reason, 'password=hunter2', { secret: 'hunter2' }, new Error('x'));
    const isInternal = reason === 'INTERNAL';
    const known = new AppError(reason, 'password=hunter2');
    expect(errors.errorBody(known)).not.toMatch(/hunter2|OF_NOBODY|toString/);
    expect(errors.errorBody(known)).toContain('"reason":"INTERNAL"');
    if (!isInternal) expect(errors.errorBody(error)).not.toContain('hunter2');
    const shown = errors.connectErrorFromAppError(error);
    expect([shown.code, shown.rawMessage]).toEqual([Code.Internal, 'internal error']);
    expect(shown.cause).toBe(error);
    expect(errors.isKnownReason(reason)).toBe(false);
  },
);
