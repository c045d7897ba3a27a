import { AppError } from '../../shared/app-error.ts';
import type { JobsReason } from './jobs-reason.ts';

/** Bytes of bodies that one thread decodes, and keeps decoded until they are answered: four of the longest by default. */
const BYTES_MAX = 32 * 1024 * 1024;

/** What the decoded bodies of one thread may take together. */
export class DecodingMemory {
  #bytes = 0;

  /** Until `release`. One alone is taken however long it is. Errors: BODY_MEMORY_EXHAUSTED. */
  take(bytes: number): void {
    if (this.#bytes > 0 && this.#bytes + bytes > BYTES_MAX) {
      const problem =
        'the memory of a decision worker for requests that it must decode is exhausted';
      throw new AppError<JobsReason>('BODY_MEMORY_EXHAUSTED', problem);
    }
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
