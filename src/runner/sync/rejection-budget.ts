const REJECTIONS_PER_MINUTE = 60;

/**
 * Anybody can send what is rejected. Beyond so many a minute they are not audited, so that they cost no
 * disk and do not push the rest of the audit out.
 */
export class RejectionBudget {
  #minute = 0;
  #used = 0;

  admits(nowMs: number): boolean {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#used = 0;
    }
    return ++this.#used <= REJECTIONS_PER_MINUTE;
  }
}
