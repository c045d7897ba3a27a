import type { WriteStream } from 'node:tty';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan';

const CODES: Readonly<Record<Style, string>> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  blue: '34',
  magenta: '35',
  cyan: '36',
};
const COLUMNS_DEFAULT = 80;
/** Maximum number of characters buffered until the end of the turn. Longer output is written at once. */
const WAITING_MAX = 65_536;
const ESC = '\u001b';
const CLEAR_LINE = `\r${ESC}[2K`;
/**
 * All that is not plain text: colours and weights (ECMA-48 SGR), which logs may use, and every other control. Other
 * controls move the cursor, set titles or make the terminal type into the keyboard.
 */
const CONTROLS =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /\u001b\[[0-9;:]*m|\u001b(?:\[[0-9;:?<=>]*[ -/]*[@-~]?|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[^[\]PX^_])?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** A colour or weight. Other bytes before `m` mean something else: `ESC [ > 4 m` sets what keys send, `ESC [ SP m` is no colour. */
// oxlint-disable-next-line no-control-regex -- that is what it looks for
const COLOR = /^\u001b\[[0-9;:]*m$/;

/**
 * Writes results for people: whole lines and, on a terminal, one status line below them that changes. Text of runs is
 * shown without control characters. Its colours are kept only where colours are wanted.
 */
export class Terminal {
  readonly #stream: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;
  readonly hasColors: boolean;
  readonly isLive: boolean;
  #status = '';
  #waiting = '';

  /** `environment` decides on colours: NO_COLOR (no-color.org), FORCE_COLOR, TERM=dumb. */
  constructor(
    stream: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>,
    environment: Readonly<Record<string, string | undefined>>,
  ) {
    this.#stream = stream;
    const isTerminal = stream.isTTY === true && environment['TERM'] !== 'dumb';
    const isForced = !['', '0', undefined].includes(environment['FORCE_COLOR']);
    const isRefused = !['', undefined].includes(environment['NO_COLOR']);
    this.hasColors = !isRefused && (isTerminal || isForced);
    this.isLive = isTerminal;
  }

  paint(text: string, ...styles: readonly Style[]): string {
    if (!this.hasColors || styles.length === 0) return text;
    return `${ESC}[${styles.map((style) => CODES[style]).join(';')}m${text}${ESC}[0m`;
  }

  /** Makes text of a run or workflow harmless: one line, with colours only where they are wanted. */
  foreign(text: string): string {
    const line = text
      .replaceAll(/[\r\n]+/g, ' ')
      .replaceAll(CONTROLS, (found) => this.#kept(found));
    return this.hasColors && line.includes(ESC) ? `${line}${ESC}[0m` : line;
  }

  /** Same as `foreign`, without colours and cut to `length` characters. */
  brief(text: string, length: number): string {
    const line = text.replaceAll(/[\r\n]+/g, ' ').replaceAll(CONTROLS, '');
    return line.length > length ? `${line.slice(0, length - 1)}…` : line;
  }

  /**
   * Writes whole lines above the status line, at the end of this turn of the event loop. Lines written together cost
   * one system call.
   */
  line(text = ''): void {
    if (this.#waiting === '') queueMicrotask(() => this.#flush());
    this.#waiting += `${text}\n`;
    if (this.#waiting.length > WAITING_MAX) this.#flush();
  }

  #flush(): void {
    if (this.#waiting === '') return;
    const lines = this.#waiting;
    this.#waiting = '';
    const isShown = this.#status !== '';
    this.#stream.write(isShown ? `${CLEAR_LINE}${lines}${this.#status}` : lines);
  }

  /** Replaces the status line; '' removes it. Does nothing without a terminal. */
  status(text: string): void {
    if (!this.isLive || text === this.#status) return;
    // Some terminals do not know their width and say 0.
    const width = (this.#stream.columns || COLUMNS_DEFAULT) - 1;
    this.#flush();
    this.#status = text.length > width ? `${text.slice(0, width - 1)}…` : text;
    this.#stream.write(`${CLEAR_LINE}${this.#status}`);
  }

  #kept(found: string): string {
    return this.hasColors && COLOR.test(found) ? found : '';
  }
}

/** Terminals of a command: one for its results, one for its remarks. */
export type Screens = { readonly output: Terminal; readonly notes: Terminal };
