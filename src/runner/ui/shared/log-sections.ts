/** Takes the log of one job in the form of the contract, in pieces, and notifies the lines of each step. */
const STEP_HEADER = /^--- Step (\d+)(?: from line (\d+))?: .* \[[a-z_]+\] ---$/;
const JOB_HEADER = /^=== Job: /;
/** Lines of steps that look like a header are indented by one space. */
const LOOKALIKE = /^ (?:=== Job:|--- Step)/;

export class LogSections {
  readonly #onLines: (stepNumber: number, lines: string[], first: number) => void;
  /** The number of the next line. */
  #next = 1;
  #rest = '';
  #step = 0;

  /** `first`: the number of the first of the lines; from 1 where the headers do not say. */
  constructor(onLines: (stepNumber: number, lines: string[], first: number) => void) {
    this.#onLines = onLines;
  }

  /** Whole lines are handed on, those of one step together; a last one without its end waits. */
  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    let found: string[] = [];
    for (const line of lines) {
      const header = line.startsWith('--- Step ') ? STEP_HEADER.exec(line) : null;
      const number = header?.[1];
      if (number === undefined && !JOB_HEADER.test(line)) {
        found.push(LOOKALIKE.test(line) ? line.slice(1) : line);
        continue;
      }
      this.#hand(found);
      found = [];
      this.#step = number === undefined ? 0 : Number(number);
      this.#next = Number(header?.[2] ?? 1);
    }
    this.#hand(found);
  }

  #hand(lines: string[]): void {
    if (lines.length > 0 && this.#step > 0) this.#onLines(this.#step, lines, this.#next);
    this.#next += lines.length;
  }
}
