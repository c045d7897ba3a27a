import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { AppError } from '../../shared/app-error.ts';
import { type Credential, kCredential } from './caller.ts';
import { mustRule, type TargetedRule } from './method-rules.ts';

type Handler = (request: unknown, context: HandlerContext) => unknown;

/** Callback for each call beyond the scopes of its caller. */
export type OnRefused = (rule: TargetedRule<unknown>, caller: string) => void;

/**
 * The handlers of a service behind the scopes of the caller: each decoded request is checked before anything else is done for
 * it. The first request of a stream decides for all of it; the stream ends when the credential does.
 */
export function guardedService<Service extends DescService>(
  service: Service,
  implementation: Partial<ServiceImpl<Service>>,
  onRefused: OnRefused,
): Partial<ServiceImpl<Service>> {
  const handlers = implementation as Readonly<Record<string, Handler | undefined>>;
  const guarded: Record<string, Handler> = {};
  for (const { localName, name, methodKind } of service.methods) {
    const handler = handlers[localName];
    if (handler === undefined) continue;
    const rule = mustRule(`/${service.typeName}/${name}`);
    const isStream = methodKind === 'client_streaming' || methodKind === 'bidi_streaming';
    guarded[localName] = (request, context) => {
      const credential = context.values.get(kCredential);
      const check = (one: unknown): void => mustAdmit(credential, rule, one, onRefused);
      if (isStream) {
        return handler(
          checkedRequests(request as AsyncIterable<unknown>, credential, check),
          context,
        );
      }
      check(request);
      return handler(request, context);
    };
  }
  // Each handler replaces the one of its name.
  return guarded as Partial<ServiceImpl<Service>>;
}

/** Errors: SCOPE_REFUSED. */
export function mustAdmit<Request>(
  { caller }: Credential,
  rule: TargetedRule<Request>,
  request: Request,
  onRefused: OnRefused,
): void {
  const refusal: AppError | null = caller.refusal(rule, request);
  if (refusal === null) return;
  onRefused(rule as TargetedRule<unknown>, caller.name);
  throw refusal;
}

async function* checkedRequests(
  requests: AsyncIterable<unknown>,
  { revoked }: Credential,
  check: (first: unknown) => void,
): AsyncGenerator {
  let isFirst = true;
  for await (const request of requests) {
    revoked.throwIfAborted();
    if (isFirst) check(request);
    isFirst = false;
    yield request;
  }
}
