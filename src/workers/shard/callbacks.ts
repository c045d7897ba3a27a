/** Callbacks that wait for one moment, in order; each is called once. */
export class Callbacks {
  /** null: none, as in most shards. */
  #waiting: (() => void)[] | null = null;

  get isEmpty(): boolean {
    return this.#waiting === null;
  }

  add(callback: () => void): void {
    this.#waiting ??= [];
    this.#waiting.push(callback);
  }

  /** The moment has come. What is added meanwhile waits for the next one. */
  run(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    for (const callback of waiting ?? []) callback();
  }
}
