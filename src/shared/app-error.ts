import type { SharedReason } from './reasons.ts';

/** Error with the stack limit of V8 and Safari; other engines have no such limit. */
const errors: typeof Error & { stackTraceLimit?: number | undefined } = Error;

/**
 * Calls `run`, during which errors record no stack. A stack costs ten times the rest of an error,
 * too much where errors are made by the thousand. Errors: those of `run`.
 */
export function withoutStacks<Result>(run: () => Result): Result {
  const { stackTraceLimit } = errors;
  errors.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    errors.stackTraceLimit = stackTraceLimit;
  }
}

/** Form of an AppError on another thread: plain data, rebuilt with `errorFromData`. */
export type ErrorData<Reason extends string = string> = {
  readonly reason: Reason;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
};

/**
 * The only error class of the project. `Reason` is the union of its service, or SharedReason. The
 * meaning of a reason on a wire is decided where it leaves the process. `cause` is for the log and
 * never leaves it.
 */
export class AppError<Reason extends string = string> extends Error {
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(
    reason: Reason,
    message: string,
    metadata: Readonly<Record<string, string>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'AppError';
    this.reason = reason;
    this.metadata = metadata;
  }

  /**
   * Same as the inherited one. Without it the compiler would treat the reason of a caught error as
   * `any`.
   */
  static override [Symbol.hasInstance](value: unknown): value is AppError {
    return Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

/**
 * An error about a caller's input, without a stack. Its position in the input is what helps, and a
 * batch may have one error for each item.
 */
export function errorWithoutStack<Reason extends string>(
  reason: Reason,
  message: string,
  metadata: Readonly<Record<string, string>>,
): AppError<Reason> {
  return withoutStacks(() => new AppError<Reason>(reason, message, metadata));
}

/**
 * The plain form of any thrown value. Anything but an AppError becomes INTERNAL without its text.
 */
export function errorToData(error: unknown): ErrorData {
  if (error instanceof AppError) {
    return { reason: error.reason, message: error.message, metadata: error.metadata };
  }
  const reason: SharedReason = 'INTERNAL';
  return { reason, message: 'internal error', metadata: {} };
}

/** The AppError of `data`, rebuilt on the thread that received it. */
export function errorFromData(data: ErrorData): AppError {
  return new AppError<string>(data.reason, data.message, data.metadata);
}
