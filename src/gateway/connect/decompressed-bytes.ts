import { AsyncLocalStorage } from 'node:async_hooks';
import type { BodyBudget, BodyHold } from '../../http/body-budget.ts';
import { gunzipCounted } from '../../http/gunzip-counted.ts';
import { gunzipLimited } from '../../http/gunzip-limited.ts';

/** What the decompressed message of the call holds whose handler runs: Connect decompresses without saying whose message it is. */
const current = new AsyncLocalStorage<BodyHold>();

/**
 * Runs the handler of a call whose messages may be compressed; what they become counts against `owner` until the next message of the call, and
 * until `work` settles.
 */
export async function countDecompressed<Answer>(
  budget: BodyBudget,
  owner: string,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const hold = budget.open(owner, { cutForRoom: holdsOn });
  try {
    return await current.run(hold, work);
  } finally {
    hold.release();
  }
}

/** Decompresses within the room that is left for the call under way. Errors: those of `gunzipCounted`. */
export function gunzipOfCall(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  const hold = current.getStore();
  return hold === undefined ? gunzipLimited(bytes, maxBytes) : gunzipCounted(bytes, maxBytes, hold);
}

function holdsOn(): void {
  // Never called: it waits for nobody.
}
