import type { BodyDeadlines, SlowBody } from '../../http/bodies/body-deadlines.ts';

/** A call whose body may still be coming. */
export interface AwaitedBody extends SlowBody {
  readonly isBodyAwaited: boolean;
  /** The turn of the loop is over in which its headers came. */
  bodyIsLate(): void;
}

/**
 * Gives deadlines to bodies that did not come with their headers. Most do, within the same turn of the loop, and
 * cost no entry among the deadlines; one immediate serves all of a turn.
 */
export class LateBodies {
  #fresh: AwaitedBody[] = [];
  #deadlines: BodyDeadlines | null = null;
  readonly #sweep = (): void => {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const body of fresh) {
      if (!body.isBodyAwaited) continue;
      this.#deadlines?.add(body);
      body.bodyIsLate();
    }
  };

  /** Hot. `deadlines` is the listener's, the same each time. */
  expect(body: AwaitedBody, deadlines: BodyDeadlines): void {
    this.#deadlines = deadlines;
    if (this.#fresh.push(body) === 1) setImmediate(this.#sweep);
  }
}
