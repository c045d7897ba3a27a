import { join } from 'node:path';
import { IdempotencyKeys } from '../face/api/idempotency.ts';
import { openJsonlFile } from '../storage/jsonl-file.ts';
import type { Closings } from './closings.ts';
import type { PartsBasis } from './parts-basis.ts';

const KEYS_ROTATE_BYTES = 4 * 1024 * 1024;

/** The keys of requests that were answered, with what is kept of them. Errors: STORE_UNAVAILABLE. */
export async function openIdempotencyKeys(
  { stateDir, clock, report }: PartsBasis,
  closings: Closings,
): Promise<IdempotencyKeys> {
  const file = await openJsonlFile({
    path: join(stateDir, 'idempotency.jsonl'),
    rotateBytes: KEYS_ROTATE_BYTES,
    keepFiles: 1,
    report,
  });
  closings.push(() => file.close());
  return IdempotencyKeys.open(clock, file, (error) => {
    report('idempotency.not_kept', error instanceof Error ? error : new Error(String(error)));
  });
}
