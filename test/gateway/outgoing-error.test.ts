import { Code, ConnectError, createContextValues } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { type CallFailure, outgoingError } from '../../src/http/connect/outgoing-error.ts';
import { OPEN_CALLERS } from '../../src/http/connect/protocol/caller-port.ts';
import { createConnectErrors } from '../../src/http/connect/protocol/connect-errors.ts';
import { AppError } from '../../src/shared/app-error.ts';

const errors = createConnectErrors({
  BODY_MALFORMED: Code.InvalidArgument,
  FIELD_REQUIRED: Code.InvalidArgument,
  METHOD_UNIMPLEMENTED: Code.Unimplemented,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  INTERNAL: Code.Internal,
});

/** What the caller and the log learn of `thrown`. */
function told(thrown: unknown): { readonly shown: ConnectError; readonly logged: CallFailure[] } {
  const logged: CallFailure[] = [];
  const policy = { errors, callers: OPEN_CALLERS, report: (f: CallFailure) => void logged.push(f) };
  const values = createContextValues();
  return { shown: outgoingError(thrown, policy, AuthzService.method.check, values), logged };
}

test('of what Connect refuses, code, text and headers stay, and the reason comes', () => {
  const headers = { 'grpc-accept-encoding': 'gzip' };
  const thrown = new ConnectError('unknown compression "br"', Code.Unimplemented, headers);
  const { shown, logged } = told(thrown);
  expect(shown).toMatchObject({
    code: Code.Unimplemented,
    rawMessage: 'unknown compression "br"',
    details: [{ desc: ErrorInfoSchema, value: { reason: 'METHOD_UNIMPLEMENTED' } }],
  });
  expect(shown.metadata.get('grpc-accept-encoding')).toBe('gzip');
  expect(logged).toEqual([]);
});

test.each([
  new ConnectError('no such service', Code.NotFound),
  new ConnectError('enough watchers', Code.ResourceExhausted),
])('what a handler chose stays as it is: %s', (chosen) => {
  expect(told(chosen).shown).toBe(chosen);
  expect(chosen.details).toEqual([]);
});

test('details that are there stay alone', () => {
  const chosen = errors.connectErrorFromAppError(new AppError('FIELD_REQUIRED', 'x: is required'));
  const details = [...chosen.details];
  expect(told(chosen).shown.details).toEqual(details);
});

test('the end of the time of a call is ours to say', () => {
  const { shown } = told(new ConnectError('the operation timed out', Code.DeadlineExceeded));
  expect(shown.code).toBe(Code.DeadlineExceeded);
  expect(shown.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: 'DEADLINE_EXCEEDED' }]);
});

test.each([new Error('secret'), 'secret', new AppError('NEVER_SHOWN', 'secret')])(
  'of what nobody foresaw the log learns all, and the caller nothing: %s',
  (thrown) => {
    const { shown, logged } = told(thrown);
    expect(shown).toMatchObject({ code: Code.Internal, rawMessage: 'internal error' });
    expect(logged).toEqual([
      { requestId: '', rpc: 'workspace.v1.AuthzService/Check', caller: '', error: thrown },
    ]);
  },
);
