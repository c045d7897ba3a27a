import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../../src/gen/google/rpc/error_details_pb.ts';
import type { Reason } from './reasons.ts';

/** What kind of failure it is: the codes of gRPC and Connect. */
export type ErrorCode =
  | 'cancelled'
  | 'unknown'
  | 'invalid_argument'
  | 'deadline_exceeded'
  | 'not_found'
  | 'already_exists'
  | 'permission_denied'
  | 'resource_exhausted'
  | 'failed_precondition'
  | 'aborted'
  | 'out_of_range'
  | 'unimplemented'
  | 'internal'
  | 'unavailable'
  | 'data_loss'
  | 'unauthenticated';

const NAMES: Readonly<Record<Code, ErrorCode>> = {
  [Code.Canceled]: 'cancelled',
  [Code.Unknown]: 'unknown',
  [Code.InvalidArgument]: 'invalid_argument',
  [Code.DeadlineExceeded]: 'deadline_exceeded',
  [Code.NotFound]: 'not_found',
  [Code.AlreadyExists]: 'already_exists',
  [Code.PermissionDenied]: 'permission_denied',
  [Code.ResourceExhausted]: 'resource_exhausted',
  [Code.FailedPrecondition]: 'failed_precondition',
  [Code.Aborted]: 'aborted',
  [Code.OutOfRange]: 'out_of_range',
  [Code.Unimplemented]: 'unimplemented',
  [Code.Internal]: 'internal',
  [Code.Unavailable]: 'unavailable',
  [Code.DataLoss]: 'data_loss',
  [Code.Unauthenticated]: 'unauthenticated',
};

/**
 * Why a call failed. Decide by `reason`; the message is for people. An error is never an allow, and never a deny
 * that may be shown as one.
 */
export class GatehouseError extends Error {
  override readonly name = 'GatehouseError';
  readonly code: ErrorCode;
  /** Of the service; '' where it did not answer, or a proxy answered for it. */
  readonly reason: Reason | '';
  /** What the reason is about, such as `field`. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    details: {
      readonly reason?: Reason | '';
      readonly metadata?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
    this.code = code;
    this.reason = details.reason ?? '';
    this.metadata = details.metadata ?? {};
  }

  /** How long to wait before the call is made again, as the service says, in milliseconds; undefined: it does not say. */
  get retryAfterMs(): number | undefined {
    const value = Number(this.metadata['retry_after_ms']);
    return Number.isFinite(value) && value >= 0 ? value : undefined;
  }
}

/** Whatever a call threw, as a GatehouseError. What never reached the service is `unavailable`. */
export function errorFrom(thrown: unknown): GatehouseError {
  if (thrown instanceof GatehouseError) return thrown;
  if (isUnreached(thrown)) {
    return new GatehouseError('unavailable', 'the service was not reached', { cause: thrown });
  }
  const error = ConnectError.from(thrown);
  const info = error.findDetails(ErrorInfoSchema)[0];
  return new GatehouseError(NAMES[error.code], error.rawMessage, {
    reason: (info?.reason ?? '') as Reason | '',
    metadata: { ...info?.metadata },
    cause: thrown,
  });
}

/** A failed `fetch` is a TypeError, which Connect passes on as the cause of an internal error. */
function isUnreached(thrown: unknown): boolean {
  if (thrown instanceof TypeError) return true;
  return thrown instanceof ConnectError && thrown.cause instanceof TypeError;
}
