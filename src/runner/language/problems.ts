import type { FileProblem, Position } from '../model/workflow.ts';
import { MESSAGE_CHARACTERS_MAX, PROBLEMS_MAX } from './limits.ts';

/** Collects what is wrong with one file, in the order found; the first of each place and text is kept. */
export class ProblemList {
  readonly #problems: FileProblem[] = [];
  readonly #seen = new Set<string>();

  add(at: Position, text: string, file?: string): void {
    const message =
      text.length <= MESSAGE_CHARACTERS_MAX
        ? text
        : `${text.slice(0, MESSAGE_CHARACTERS_MAX)}[...]`;
    const key = `${file ?? ''}:${at.line}:${at.column}:${message}`;
    if (this.#seen.has(key) || this.#problems.length > PROBLEMS_MAX) {
      return;
    }
    this.#seen.add(key);
    this.#problems.push(
      this.#problems.length === PROBLEMS_MAX
        ? {
            line: 1,
            column: 1,
            message: `More than ${PROBLEMS_MAX} problems; the rest is left out`,
          }
        : {
            line: at.line,
            column: at.column,
            message,
            ...(file === undefined ? {} : { file }),
          },
    );
  }

  get isEmpty(): boolean {
    return this.#problems.length === 0;
  }

  get all(): readonly FileProblem[] {
    return this.#problems;
  }
}
