import { StringDecoder } from 'node:string_decoder';
import type { Masker } from './masker.ts';
import { lastSegment, UnfinishedLine, utf8Exceeds } from './unfinished-line.ts';

export type LineSplitterOptions = {
  /** Longer lines are split; the pieces but the last end with a marker. */
  readonly lineBytesMax: number;
  /**
   * Raw lines without their ends, and a text that holds them all, for those who look for something
   * rare in it first. A promise is handed on to the caller of `push`.
   */
  readonly onLines: (lines: string[], block: string) => Promise<void> | undefined;
  /**
   * Hides what would be cut in two by a split: the pieces of an over-long line come masked. Without it
   * secrets may survive there.
   */
  readonly masker?: Masker | undefined;
};

/**
 * Turns the bytes of a process into lines: UTF-8 whatever the borders of chunks, ends with LF or CRLF,
 * and of a line that a lone CR rewrote (a progress bar) only what was written last, and commands.
 */
export interface LineSplitter {
  /** Cost: one decoding, one split; nothing a line. The chunk may be reused afterwards. */
  push(chunk: Buffer): Promise<void> | undefined;
  /** Hands on what stands after the last line end. */
  end(): void;
}

export function createLineSplitter(options: LineSplitterOptions): LineSplitter {
  const decoder = new StringDecoder('utf8');
  const tail = new UnfinishedLine(options.lineBytesMax, options.masker);

  function take(text: string): Promise<void> | undefined {
    const firstEnd = text.indexOf('\n');
    const lines: string[] = [];
    if (firstEnd === -1) {
      tail.append(text, lines);
      return lines.length > 0 ? options.onLines(lines, lines.join('\n')) : undefined;
    }
    const lastEnd = text.lastIndexOf('\n');
    tail.append(text.slice(0, firstEnd), lines);
    tail.finish(lines);
    let block = lines.join('\n');
    if (lastEnd > firstEnd) {
      const rest = text.slice(firstEnd + 1, lastEnd);
      splitBlock(rest, lines);
      block += `\n${rest}`;
    }
    const lineCount = lines.length;
    tail.append(text.slice(lastEnd + 1), lines);
    for (let index = lineCount; index < lines.length; index += 1) {
      block += `\n${lines[index] ?? ''}`;
    }
    return options.onLines(lines, block);
  }

  /** Appends the whole lines of `block`, which does not end with a line end. Hot. */
  function splitBlock(block: string, lines: string[]): void {
    const hasReturns = block.includes('\r');
    for (const line of block.split('\n')) {
      const text = hasReturns ? lastSegment(line, lines) : line;
      if (utf8Exceeds(text, options.lineBytesMax)) {
        const long = new UnfinishedLine(options.lineBytesMax, options.masker);
        long.append(text, lines);
        long.finish(lines);
      } else {
        lines.push(text);
      }
    }
  }

  return {
    push(chunk) {
      const text = decoder.write(chunk);
      return text === '' ? undefined : take(text);
    },
    end() {
      const lines: string[] = [];
      tail.append(decoder.end(), lines);
      if (!tail.isEmpty()) {
        tail.finish(lines);
      }
      if (lines.length > 0) {
        void options.onLines(lines, lines.join('\n'));
      }
    },
  };
}
