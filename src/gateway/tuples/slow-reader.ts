import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** A reader of a stream took nothing for too long. */
export class StalledError extends AppError<AuthzReason> {
  constructor(stallMs: number) {
    super('DEADLINE_EXCEEDED', `nothing of the stream was read for ${stallMs / 1_000} s`);
  }
}

/** Sends a part and waits until the reader has taken it, or has gone. Errors: StalledError after `stallMs`. */
export async function writeTo(
  exchange: HttpExchange,
  part: string | Uint8Array,
  stallMs: number,
): Promise<void> {
  if (exchange.write(part)) return;
  if (!(await isTaken(exchange, stallMs))) throw new StalledError(stallMs);
}

/** Ends a stream with its last part. A connection on which that is not taken for `stallMs` is cut, so that nothing is held for long. */
export async function finishWith(
  exchange: HttpExchange,
  part: string,
  stallMs: number,
): Promise<void> {
  if (exchange.write(part) || (await isTaken(exchange, stallMs))) exchange.finish();
  else exchange.abort();
}

/** Whether what waits was taken, or the reader has gone, within so many milliseconds. */
async function isTaken(exchange: HttpExchange, ms: number): Promise<boolean> {
  return await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    exchange.onWritable(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
