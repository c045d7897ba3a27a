/**
 * One change after the other, whichever part makes it: commands and pulls read the mirror, wait for a backend, and
 * write the mirror, and none may do so between the halves of another.
 */
export class ChangeTurns {
  #turn: Promise<unknown> = Promise.resolve();

  /** Runs `action` after all that were given before, also after those that failed. Errors: those of `action`. */
  take<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when all that were given before have ended. Never rejects. */
  async ended(): Promise<void> {
    await this.#turn;
  }
}
