import { StreamedBody } from '../bodies/streamed-body.ts';
import type { UnitEnds } from '../bodies/unit-ends.ts';
import type { HttpExchange } from './http-exchange.ts';

/** The body of an HTTP/1.1 request by whole units; a slow reader holds the client back. */
export function streamedBodyOfExchange(
  exchange: HttpExchange,
  ends: UnitEnds,
  signal: AbortSignal,
): StreamedBody {
  const body = new StreamedBody({
    ends,
    budget: exchange.bodyBudget,
    owner: () => exchange.bodyOwner,
    signal,
    pause: () => exchange.pauseBody(),
    resume: () => exchange.resumeBody(),
  });
  exchange.streamBody(
    (chunk, isLast) => {
      body.came(chunk);
      if (isLast) body.ended();
    },
    () => body.release(),
  );
  return body;
}
