import type { RunSecond } from './run-result.ts';

/** What a run says while it lasts: on a terminal one line that changes, else one for every fifth second. */
export class Progress {
  readonly #stream = process.stderr;
  #isOpen = false;

  say(text: string): void {
    this.end();
    this.#stream.write(`${text}\n`);
  }

  /** Tells of a second of a run of `total` seconds. */
  second(stage: string, total: number | undefined, second: RunSecond): void {
    const { offered, answered, wrong, notSent, latencies } = second;
    const refused = Object.values(second.refused).reduce((sum, count) => sum + count, 0);
    const [p50, p99] = [latencies.p50, latencies.p99].map((ms) => ms.toPrecision(3));
    const of = total === undefined ? '' : `/${Math.ceil(total)}`;
    const odd = `${wrong > 0 ? `  ${wrong} WRONG` : ''}${notSent > 0 ? `  ${notSent} not sent` : ''}`;
    const line = `${second.second + 1}${of} s  ${stage}  ${offered}/s asked  ${answered} answered  ${refused} refused${odd}  p50 ${p50} p99 ${p99} ms`;
    if (this.#stream.isTTY) {
      // Cut: a line that wraps could not be written over.
      this.#stream.write(`\r\u001B[2K${line.slice(0, Math.max(20, this.#stream.columns - 1))}`);
      this.#isOpen = true;
    } else if ((second.second + 1) % 5 === 0) this.#stream.write(`${line}\n`);
  }

  end(): void {
    if (this.#isOpen) this.#stream.write('\n');
    this.#isOpen = false;
  }
}
