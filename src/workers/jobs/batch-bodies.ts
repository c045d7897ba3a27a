/**
 * The bodies of one batch, for its jobs. They are in memory that is the gateway's again once the batch is replied to:
 * a job that is not answered by then copies its body.
 */
export class BatchBodies {
  #bytes: Uint8Array;
  #open = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The bytes at positions that never change; the array may be another one after `leave`. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** One more job reads them. */
  opened(): void {
    this.#open += 1;
  }

  /** A job has been answered. */
  closed(): void {
    this.#open -= 1;
  }

  /** Called before the reply. O(bytes) if a job is still open, and then once for all of them. */
  leave(): void {
    if (this.#open > 0 && this.#bytes.buffer instanceof SharedArrayBuffer) {
      this.#bytes = this.#bytes.slice();
    }
  }
}
