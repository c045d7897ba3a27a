import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { AppError } from '../../../shared/app-error.ts';
import { createConnectErrors } from './connect-errors.ts';
import { withReason } from './protocol-error.ts';

const { connectErrorFromAppError } = createConnectErrors({
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  INTERNAL: Code.Internal,
});

test('code, text and headers stay as Connect chose them', () => {
  const headers = { 'grpc-accept-encoding': 'gzip' };
  const error = withReason(
    new ConnectError('unknown compression "br"', Code.Unimplemented, headers),
    connectErrorFromAppError,
  );
  expect(error).toMatchObject({
    code: Code.Unimplemented,
    rawMessage: 'unknown compression "br"',
    details: [{ desc: ErrorInfoSchema, value: { reason: 'METHOD_UNIMPLEMENTED' } }],
  });
  expect(error.metadata.get('grpc-accept-encoding')).toBe('gzip');
});

test.each([
  new ConnectError('no such service', Code.NotFound),
  new ConnectError('enough watchers', Code.ResourceExhausted),
])('what a handler chose stays as it is: %s', (chosen) => {
  expect(withReason(chosen, connectErrorFromAppError).details).toEqual([]);
});

test('details that are there stay alone', () => {
  const shown = connectErrorFromAppError(new AppError('FIELD_REQUIRED', 'x: is required'));
  const details = [...shown.details];
  expect(withReason(shown, connectErrorFromAppError).details).toEqual(details);
});
