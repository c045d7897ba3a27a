import type { Step } from '../model/run.ts';

/** What happened in a run that is followed. `first` is the number of the first line, from 0. */
export type FeedItem =
  | {
      readonly kind: 'lines';
      readonly jobId: string;
      readonly stepNumber: number;
      readonly first: number;
      readonly lines: readonly string[];
    }
  | { readonly kind: 'step'; readonly jobId: string; readonly step: Step }
  | { readonly kind: 'end' };

/** Characters of lines that wait for one reader. */
const WAITING_MAX = 1_048_576;
const LINE_OVERHEAD = 16;

/**
 * Items for one reader that takes its time. Too many of them are thrown away, and `lost` notifies the
 * reader to look at the disk instead. One reader at a time.
 */
export class RunFeed {
  #items: FeedItem[] = [];
  #waiting = 0;
  #isLossy = false;
  #isEnded = false;
  #wake: (() => void) | undefined;

  push(item: FeedItem): void {
    if (item.kind === 'end') this.#isEnded = true;
    else this.#add(item);
    this.#wake?.();
  }

  /** The next item, in order; waits for one. */
  async next(): Promise<FeedItem | { readonly kind: 'lost' }> {
    for (;;) {
      if (this.#isLossy) {
        this.#isLossy = false;
        return { kind: 'lost' };
      }
      const item = this.#items.shift();
      if (item !== undefined) {
        this.#waiting -= sizeOf(item);
        return item;
      }
      if (this.#isEnded) return { kind: 'end' };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }

  #add(item: FeedItem): void {
    this.#items.push(item);
    this.#waiting += sizeOf(item);
    if (this.#waiting <= WAITING_MAX) return;
    this.#items = [];
    this.#waiting = 0;
    this.#isLossy = true;
  }
}

function sizeOf(item: FeedItem): number {
  if (item.kind !== 'lines') return LINE_OVERHEAD;
  let size = 0;
  for (const line of item.lines) size += line.length + LINE_OVERHEAD;
  return size;
}
