import type { Conclusion } from '../model/run.ts';

/**
 * What the runner left out of a run by itself, not by a condition of the workflow: jobs of another operating
 * system, matrix jobs that were not asked for. A run in which nothing else ran, or of whose choice of matrix jobs nothing
 * came, is no success.
 */
export class Omissions {
  #jobs = 0;
  #isChoiceMet = false;
  #isChoiceMissed = false;

  /** A job was skipped by the runner. */
  leftOut(): void {
    this.#jobs += 1;
  }

  /** A matrix has matrix jobs of the choice, or `hasMatrixJob` says that it has none. */
  chose(hasMatrixJob: boolean): void {
    if (hasMatrixJob) this.#isChoiceMet = true;
    else this.#isChoiceMissed = true;
  }

  /** Why a run of this conclusion is none after all; undefined where it is. */
  reasonAgainst(conclusion: Conclusion): string | undefined {
    if (conclusion === 'skipped' && this.#jobs > 0) {
      const jobs = this.#jobs === 1 ? '1 job was' : `${this.#jobs} jobs were`;
      return `Nothing ran: ${jobs} left out by the runner, not by a condition of the workflow`;
    }
    const isLost = this.#isChoiceMissed && !this.#isChoiceMet;
    return isLost && conclusion === 'success'
      ? 'No leg of any matrix has the values that were asked for'
      : undefined;
  }
}
