import { Code } from '@connectrpc/connect';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import { refusal } from './adapter-refusal.ts';
import type { CallHandler } from './call-handler.ts';
import type { CallRecord } from './call-record.ts';
import type { ErrorPolicy } from './outgoing-error.ts';
import type { Admitted } from './protocol/caller-port.ts';
import { envelopedWireOf, UNARY_TYPES_TEXT } from './protocol/wire.ts';

/** Head of a call: its path, verb and headers that matter before its body. */
export type CallHead = {
  readonly path: string;
  readonly requestId: string;
  readonly contentType: string;
  readonly method: string;
  /** Absent where there is no such method, or no callback for calls. */
  readonly record?: CallRecord | undefined;
  /** Whether it came by HTTP/1.1, which carries no trailers. */
  readonly isHttp1: boolean;
};

/**
 * Answers calls that no handler sees: those without a credential, a known method, a content type that it takes, or any scope
 * for it.
 */
export class EarlyAnswers {
  readonly #policy: ErrorPolicy;
  readonly #areTypesNamed: boolean;

  constructor(policy: ErrorPolicy, areTypesNamed: boolean) {
    this.#policy = policy;
    this.#areTypesNamed = areTypesNamed;
  }

  /** The answer to a call that no handler sees, whose record it ends; null where a handler is to answer. */
  answerTo(
    head: CallHead,
    handler: CallHandler | undefined,
    admission: Admitted | AppError,
  ): HttpAnswer | null {
    const { path, method, contentType, record } = head;
    if (admission instanceof AppError) return this.#refused(head, admission);
    if (handler === undefined) return this.unknown(path, contentType);
    if (method !== 'POST') return { status: 405 };
    if (
      !handler.takes(contentType) ||
      (head.isHttp1 && envelopedWireOf(contentType)?.protocol === 'grpc')
    ) {
      record?.failed(Code.InvalidArgument);
      record?.finish();
      return this.otherType();
    }
    // The caller may reach nothing by this method: the body need not be read.
    const error = this.#policy.callers.refusalAnywhere(path, admission);
    if (error === null) return null;
    const shown = this.#policy.errors.connectErrorFromAppError(error);
    this.#policy.onFailure?.(path.slice(1), error, shown);
    return this.#refused(head, error);
  }

  #refused({ contentType, record }: CallHead, error: AppError): HttpAnswer {
    const { errors } = this.#policy;
    record?.failed(errors.codeOfReason(error.reason));
    record?.finish();
    return refusal(contentType, error, errors);
  }

  /** The answer to a content type that a method does not take. */
  otherType(): HttpAnswer {
    if (!this.#areTypesNamed) return { status: 415 };
    return { status: 415, header: new Headers({ 'accept-post': UNARY_TYPES_TEXT }) };
  }

  /** The answer to a call of a method that does not exist. */
  unknown(path: string, contentType: string): HttpAnswer {
    const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
    const error = new AppError<SharedReason>('METHOD_UNKNOWN', `${shown}: there is no such method`);
    return refusal(contentType, error, this.#policy.errors);
  }
}
