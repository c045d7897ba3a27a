import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { WriteAdmission } from '../ports.ts';

/** Changes of one project's settings under way, and until when (monotonic) one without an outcome may still come. */
type Doubt = { count: number; untilMs: number };

export type SettingsInDoubtOptions = {
  readonly clock: Clock;
  readonly admission: Pick<WriteAdmission, 'isOvertaken'>;
  /** How long a change whose outcome is not known counts as under way. */
  readonly ttlMs: number;
};

/**
 * Projects whose settings are being changed from here. The database shows a change before this instance has it in
 * effect: its workers take up the model first. Whoever asks the database meanwhile, as an instance that joins does, may answer by it;
 * so, while this one answers from memory, the reads of such a project ask the database, too. For tuples
 * `OpenCommits` does this.
 */
export class SettingsInDoubt {
  readonly #options: SettingsInDoubtOptions;
  readonly #doubts = new Map<string, Doubt>();

  constructor(options: SettingsInDoubtOptions) {
    this.#options = options;
  }

  /** Whether settings of `projectId` from memory may be older than what others were shown. Hot. */
  has(projectId: string): boolean {
    return (
      this.#doubts.size !== 0 && this.#options.admission.isOvertaken && this.#isDoubted(projectId)
    );
  }

  /** Runs `change`, which resolves when its effect is in force here. */
  async during<T>(projectId: string, change: () => Promise<T>): Promise<T> {
    const doubt = this.#doubts.get(projectId) ?? { count: 0, untilMs: Number.NEGATIVE_INFINITY };
    this.#doubts.set(projectId, doubt);
    doubt.count += 1;
    try {
      return await change();
    } catch (error) {
      // The change may have been committed, or be yet. Settings loaded until then are refreshed as they age.
      const isUnknown = error instanceof AppError && error.reason === 'STORE_UNAVAILABLE';
      if (isUnknown) doubt.untilMs = this.#nowMs() + this.#options.ttlMs;
      throw error;
    } finally {
      doubt.count -= 1;
      if (!isOpen(doubt, this.#nowMs())) this.#doubts.delete(projectId);
    }
  }

  #isDoubted(projectId: string): boolean {
    const doubt = this.#doubts.get(projectId);
    if (doubt === undefined) return false;
    if (isOpen(doubt, this.#nowMs())) return true;
    this.#doubts.delete(projectId);
    return false;
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

function isOpen({ count, untilMs }: Doubt, nowMs: number): boolean {
  return count > 0 || nowMs < untilMs;
}
