/** Callbacks that wait for one moment, in order; each is called once. */
export class Callbacks {
  #waiting: (() => void)[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(callback: () => void): void {
    this.#waiting.push(callback);
  }

  /** The moment has come. What is added meanwhile waits for the next one. */
  run(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const callback of waiting) callback();
  }
}
