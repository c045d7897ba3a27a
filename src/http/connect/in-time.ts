import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { deadlineExceeded } from './protocol/call-errors.ts';

type UnaryHandler = (request: unknown, context: HandlerContext) => unknown;

/**
 * The handlers of a service of unary methods, none of which begins once its answer has nobody who waits for it. Errors: DEADLINE_EXCEEDED.
 */
export function begunInTime<Service extends DescService>(
  implementation: ServiceImpl<Service>,
): ServiceImpl<Service> {
  const entries = Object.entries(implementation as Readonly<Record<string, UnaryHandler>>);
  const guarded = entries.map(([name, handler]): [string, UnaryHandler] => [
    name,
    (request, context) => {
      if (context.signal.aborted) throw deadlineExceeded();
      return handler(request, context);
    },
  ]);
  // Each handler stands in the place of that of its name.
  return Object.fromEntries(guarded) as ServiceImpl<Service>;
}
