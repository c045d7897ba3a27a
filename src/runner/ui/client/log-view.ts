import { styledText } from '../shared/ansi.ts';
import type { LogLines } from '../shared/log-lines.ts';

/** As in the style sheet: rows of one height can be found without measuring. */
const ROW_HEIGHT = 20;
const OVERSCAN_ROWS = 20;
const VISIBLE_ROWS_MAX = 30;
/** Lines that are fetched at a time of those that were left out. */
const PAGE_LINES = 20_000;
/** Characters of a line that are drawn. */
const LINE_LENGTH_MAX = 5_000;
const MARKED = /^##\[(group|endgroup|error|warning|notice|debug|command)\]/;

/** The whole log on the server. */
export type LogSource = {
  readonly load: (
    first: number,
    count: number,
  ) => Promise<{ readonly first: number; readonly lines: readonly string[] }>;
  /** The next line with the text behind `from`, or before it, around the ends. */
  readonly find: (
    text: string,
    from: number,
    isBackward: boolean,
  ) => Promise<{ readonly line: number | null }>;
};

/**
 * The log of one step. Only the rows that can be seen are in the document, so that the number of lines
 * costs memory alone. It follows the end as long as the reader stays there.
 */
export class LogView {
  readonly #scroller = document.createElement('div');
  readonly #space = document.createElement('div');
  readonly #rows = document.createElement('div');
  readonly #count = document.createElement('span');
  readonly #follow = document.createElement('button');
  readonly #find = document.createElement('input');
  /** The number of the line that was found; 0: none. */
  #found = 0;
  readonly #lines: LogLines;
  readonly #source: LogSource;
  #isBusy = false;
  #problem = '';
  #isFollowing = true;
  #isScheduled = false;

  constructor(container: HTMLElement, name: string, lines: LogLines, source: LogSource) {
    this.#lines = lines;
    this.#source = source;
    this.#scroller.className = 'log-scroll';
    this.#scroller.tabIndex = 0;
    this.#scroller.setAttribute('role', 'log');
    this.#scroller.setAttribute('aria-live', 'off');
    this.#scroller.setAttribute('aria-label', `Log of ${name}`);
    this.#space.className = 'log-space';
    this.#rows.className = 'log-rows';
    this.#space.append(this.#rows);
    this.#scroller.append(this.#space);
    const bar = document.createElement('div');
    bar.className = 'log-bar';
    this.#follow.type = 'button';
    this.#follow.className = 'small';
    this.#follow.textContent = 'Go to the end';
    this.#follow.addEventListener('click', () => {
      this.#isFollowing = true;
      this.#schedule();
    });
    this.#count.className = 'count-of-lines';
    this.#find.type = 'search';
    this.#find.placeholder = 'Find in log';
    this.#find.setAttribute('aria-label', `Find in log of ${name}; Enter goes to the next line`);
    this.#find.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') void this.#search(event.shiftKey);
    });
    bar.append(this.#count, this.#find, this.#follow);
    container.replaceChildren(this.#scroller, bar);
    this.#scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    this.#schedule();
  }

  /** The number of the line at the top; undefined while the end is followed. */
  get place(): number | undefined {
    if (this.#isFollowing) return undefined;
    const row = this.#lines.row(Math.floor(this.#scroller.scrollTop / ROW_HEIGHT));
    return row?.kind === 'gap' ? row.to + 1 : row?.number;
  }

  /** Draws once more: lines came, or it was hidden before. */
  refresh(): void {
    this.#schedule();
  }

  /** Goes to the next line that has the text, or the one before, around the ends. All of the log is searched. */
  async #search(isBackward: boolean): Promise<void> {
    const wanted = this.#find.value;
    if (this.#isBusy) return;
    if (wanted === '') this.#found = 0;
    else {
      const from = isBackward && this.#found === 0 ? this.#lines.total + 1 : this.#found;
      await this.#busy(async () => {
        const { line } = await this.#source.find(wanted, from, isBackward);
        this.#found = line ?? 0;
        if (line !== null) await this.#goTo(line);
      });
    }
    this.#find.toggleAttribute('aria-invalid', wanted !== '' && this.#found === 0);
    this.#schedule();
  }

  async #goTo(line: number): Promise<void> {
    this.#isFollowing = false;
    if (this.#lines.rowOf(line) === undefined) {
      const { first, lines } = await this.#source.load(
        Math.max(1, line - PAGE_LINES / 2),
        PAGE_LINES,
      );
      this.#lines.add(first, lines, line);
    }
    this.#resize();
    this.#scroller.scrollTop = ((this.#lines.rowOf(line) ?? 0) - VISIBLE_ROWS_MAX / 3) * ROW_HEIGHT;
  }

  /** Fetches the lines next to what is shown; the line below the gap stays where it is. */
  async #loadGap(from: number, to: number): Promise<void> {
    if (this.#isBusy) return;
    this.#isFollowing = false;
    await this.#busy(async () => {
      const first = Math.max(from, to - PAGE_LINES + 1);
      const page = await this.#source.load(first, to - first + 1);
      const before = this.#lines.rowOf(to + 1) ?? 0;
      this.#lines.add(page.first, page.lines, to);
      this.#resize();
      this.#scroller.scrollTop += ((this.#lines.rowOf(to + 1) ?? before) - before) * ROW_HEIGHT;
    });
    this.#schedule();
  }

  /** One question at a time; what fails is said beside the count. */
  async #busy(action: () => Promise<void>): Promise<void> {
    this.#isBusy = true;
    try {
      await action();
      this.#problem = '';
    } catch (error) {
      this.#problem = ` · ${error instanceof Error ? error.message : 'the runner does not answer'}`;
    } finally {
      this.#isBusy = false;
    }
  }

  #onScroll(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    this.#isFollowing = scrollTop + clientHeight >= scrollHeight - ROW_HEIGHT;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#draw();
    });
  }

  #resize(): void {
    const total = this.#lines.rowCount;
    this.#space.style.height = `${total * ROW_HEIGHT}px`;
    this.#scroller.style.height = `${Math.min(VISIBLE_ROWS_MAX, Math.max(1, total)) * ROW_HEIGHT + 12}px`;
  }

  #draw(): void {
    const total = this.#lines.rowCount;
    this.#resize();
    if (this.#isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    const { scrollTop, clientHeight } = this.#scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - OVERSCAN_ROWS);
    const last = Math.min(
      total,
      Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + OVERSCAN_ROWS,
    );
    const rows: Node[] = [];
    for (let i = first; i < last; i++) {
      const row = this.#lines.row(i);
      if (row?.kind === 'gap') rows.push(this.#gapRow(row.from, row.to));
      if (row?.kind !== 'line') continue;
      const element = rowOf(row.number, row.text);
      if (row.number === this.#found) element.classList.add('found');
      rows.push(element);
    }
    this.#rows.style.transform = `translateY(${first * ROW_HEIGHT}px)`;
    this.#rows.replaceChildren(...rows);
    const { total: count, missing } = this.#lines;
    const left =
      missing === 0
        ? ''
        : `, ${missing.toLocaleString('en')} of them not loaded (the search has all)`;
    const words = `${count.toLocaleString('en')} ${count === 1 ? 'line' : 'lines'}${left}`;
    this.#count.textContent = words + this.#problem;
    this.#follow.hidden = this.#isFollowing || total <= VISIBLE_ROWS_MAX;
  }

  #gapRow(from: number, to: number): HTMLElement {
    const row = document.createElement('div');
    row.className = 'row gap';
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'small';
    const count = Math.min(PAGE_LINES, to - from + 1).toLocaleString('en');
    const range = `${from.toLocaleString('en')} to ${to.toLocaleString('en')}`;
    button.textContent = `Lines ${range} are not shown: load ${count}`;
    button.addEventListener('click', () => void this.#loadGap(from, to));
    row.append(button);
    return row;
  }
}

function rowOf(number: number, line: string): HTMLElement {
  const row = document.createElement('div');
  row.className = 'row';
  const gutter = document.createElement('span');
  gutter.className = 'number';
  gutter.textContent = String(number);
  const text = document.createElement('span');
  text.className = 'text';
  const mark = MARKED.exec(line);
  if (mark !== null) text.classList.add(`mark-${mark[1] ?? ''}`);
  const shown = mark === null ? line : line.slice(mark[0].length);
  for (const piece of styledText(shown.slice(0, LINE_LENGTH_MAX))) {
    if (piece.classes === '') {
      text.append(piece.text);
      continue;
    }
    const span = document.createElement('span');
    span.className = piece.classes;
    span.textContent = piece.text;
    text.append(span);
  }
  if (shown.length > LINE_LENGTH_MAX) {
    text.append(
      ` … ${(shown.length - LINE_LENGTH_MAX).toLocaleString()} more characters in the raw log`,
    );
  }
  row.append(gutter, text);
  return row;
}
