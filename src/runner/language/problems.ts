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

const LENGTH_MAX = 100;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** What is wrong with the id of a job or step, in GitHub's words. */
export function identifierProblem(id: string): string | undefined {
  if (!IDENTIFIER.test(id) || id.length >= LENGTH_MAX) {
    return `The identifier '${id}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. IDs must start with a letter or '_' and and must be less than ${LENGTH_MAX} characters.`;
  }
  return id.startsWith('__')
    ? `The identifier '${id}' is invalid. IDs starting with '__' are reserved.`
    : undefined;
}
