import { styledText } from '../shared/ansi.ts';

/** As in the style sheet: rows of one height can be found without measuring. */
const ROW_HEIGHT = 20;
const OVERSCAN_ROWS = 20;
const VISIBLE_ROWS_MAX = 30;
/** Lines kept of one step; older ones are in the raw log. */
const LINES_MAX = 200_000;
/** Characters of a line that are drawn. */
const LINE_LENGTH_MAX = 5_000;
const MARKED = /^##\[(group|endgroup|error|warning|notice|debug|command)\]/;

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
  #found = -1;
  #lines: string[] = [];
  #dropped = 0;
  #isFollowing = true;
  #isScheduled = false;

  constructor(container: HTMLElement, name: string) {
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
      if (event.key === 'Enter') this.#search(event.shiftKey ? -1 : 1);
    });
    bar.append(this.#count, this.#find, this.#follow);
    container.replaceChildren(this.#scroller, bar);
    this.#scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    this.#schedule();
  }

  add(lines: readonly string[]): void {
    for (const line of lines) this.#lines.push(line);
    const excess = this.#lines.length - LINES_MAX;
    if (excess > LINES_MAX / 10) {
      this.#lines = this.#lines.slice(excess);
      this.#found = Math.max(-1, this.#found - excess);
      this.#dropped += excess;
    }
    this.#schedule();
  }

  clear(): void {
    this.#lines = [];
    this.#dropped = 0;
    this.#found = -1;
    this.#schedule();
  }

  /** Draws once more, when it was hidden before. */
  refresh(): void {
    this.#schedule();
  }

  /** Goes to the next line that has the text, or the one before, around the ends. */
  #search(direction: 1 | -1): void {
    const wanted = this.#find.value.toLowerCase();
    const total = this.#lines.length;
    const start = this.#found < 0 && direction < 0 ? total : this.#found;
    this.#found = -1;
    for (let step = 1; wanted !== '' && step <= total; step++) {
      const at = (start + direction * step + 2 * total) % total;
      if (this.#lines[at]?.toLowerCase().includes(wanted) !== true) continue;
      this.#found = at;
      this.#isFollowing = false;
      this.#scroller.scrollTop = (at - VISIBLE_ROWS_MAX / 3) * ROW_HEIGHT;
      break;
    }
    const isMissing = wanted !== '' && this.#found < 0;
    this.#find.toggleAttribute('aria-invalid', isMissing);
    this.#schedule();
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

  #draw(): void {
    const total = this.#lines.length;
    this.#space.style.height = `${total * ROW_HEIGHT}px`;
    this.#scroller.style.height = `${Math.min(VISIBLE_ROWS_MAX, Math.max(1, total)) * ROW_HEIGHT + 12}px`;
    if (this.#isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    const { scrollTop, clientHeight } = this.#scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - OVERSCAN_ROWS);
    const last = Math.min(
      total,
      Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + OVERSCAN_ROWS,
    );
    const rows: Node[] = [];
    for (let i = first; i < last; i++) {
      const row = rowOf(this.#dropped + i + 1, this.#lines[i] ?? '');
      if (i === this.#found) row.classList.add('found');
      rows.push(row);
    }
    this.#rows.style.transform = `translateY(${first * ROW_HEIGHT}px)`;
    this.#rows.replaceChildren(...rows);
    const count = this.#dropped + total;
    const dropped =
      this.#dropped === 0
        ? ''
        : `, the first ${this.#dropped.toLocaleString()} are in the raw log only`;
    this.#count.textContent = `${count.toLocaleString()} ${count === 1 ? 'line' : 'lines'}${dropped}`;
    this.#follow.hidden = this.#isFollowing || total <= VISIBLE_ROWS_MAX;
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
