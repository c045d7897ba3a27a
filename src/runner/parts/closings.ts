/** What was opened so far, to be closed in the reverse order: when a later part fails, and at the end. */
export class Closings {
  readonly #closings: (() => Promise<void>)[] = [];

  push(close: () => Promise<void>): void {
    this.#closings.push(close);
  }

  /** Idempotent. Errors: the first of a part that cannot be closed; those opened before it stay open. */
  async closeAll(): Promise<void> {
    const closings = this.#closings;
    for (let close = closings.pop(); close !== undefined; close = closings.pop()) await close();
  }
}

/** Opens parts. Errors: those of `open`, once what it had opened is closed again. */
export async function openOrClose<T>(open: (closings: Closings) => Promise<T>): Promise<T> {
  const closings = new Closings();
  try {
    return await open(closings);
  } catch (error) {
    await closings.closeAll();
    throw error;
  }
}
