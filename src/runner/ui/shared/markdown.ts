import { html, type SafeHtml, webAddress, type HtmlValue } from './html.ts';

/** Characters of a summary that are shown; the rest is in its own address. */
const LENGTH_MAX = 131_072;
/** A longer line is shown as it is: patterns would search it for too long. */
const LINE_LENGTH_MAX = 1_000;
const QUOTES_MAX = 5;
const LIST_ITEM = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
/** Code, strong, emphasis, struck out, link; images are shown as links. */
const INLINE =
  /`([^`]{1,200})`|\*\*([^*]{1,200})\*\*|__([^_]{1,200})__|\*([^*\s][^*]{0,200})\*|(?<![\w])_([^_\s][^_]{0,200})_(?![\w])|~~([^~]{1,200})~~|!?\[([^\]]{0,200})\]\(([^()\s]+)\)|(https?:\/\/[^\s<>"')\]]+)/g;

/**
 * The markdown of step summaries that is in common use (headings, lists, tables, code, quotes, emphasis,
 * links to http and https). What is none of these, and all HTML, is shown as the text that it is.
 */
export function markdown(source: string): SafeHtml {
  return nested(source, 0);
}

function nested(source: string, depth: number): SafeHtml {
  const lines = source.slice(0, LENGTH_MAX).replaceAll('\r\n', '\n').split('\n');
  const blocks: SafeHtml[] = [];
  const reader = new Lines(lines);
  while (!reader.isDone) blocks.push(block(reader, depth));
  const cut = source.length > LENGTH_MAX ? html`<p class="muted">The summary goes on.</p>` : null;
  return html`${blocks}${cut}`;
}

class Lines {
  readonly #lines: readonly string[];
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  get isDone(): boolean {
    return this.#at >= this.#lines.length;
  }

  peek(offset = 0): string {
    return this.#lines[this.#at + offset] ?? '';
  }

  take(): string {
    this.#at += 1;
    return this.#lines[this.#at - 1] ?? '';
  }

  /** Lines as long as they pass. */
  takeWhile(isWanted: (line: string) => boolean): string[] {
    const taken: string[] = [];
    while (!this.isDone && isWanted(this.peek())) taken.push(this.take());
    return taken;
  }
}

function block(lines: Lines, depth: number): SafeHtml {
  const line = lines.peek();
  if (line.trim() === '') {
    lines.take();
    return html``;
  }
  if (line.length > LINE_LENGTH_MAX) return html`<p>${lines.take()}</p>`;
  const fence = /^\s*(```+|~~~+)/.exec(line)?.[1];
  if (fence !== undefined) return code(lines, fence);
  const [, marks, title = ''] = HEADING.exec(line) ?? [];
  if (marks !== undefined) {
    lines.take();
    return heading(marks.length, title);
  }
  if (/^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/.test(line)) {
    lines.take();
    return html`<hr />`;
  }
  if (line.includes('|') && isTableRule(lines.peek(1))) return table(lines);
  if (line.startsWith('>') && depth < QUOTES_MAX) {
    const quoted = lines.takeWhile((one) => one.startsWith('>'));
    return html`<blockquote>
      ${nested(quoted.map((one) => one.replace(/^>\s?/, '')).join('\n'), depth + 1)}
    </blockquote>`;
  }
  if (LIST_ITEM.test(line)) return list(lines);
  const first = lines.take();
  const rest = lines.takeWhile(isParagraph);
  return html`<p>${inline(first)}${rest.map((one) => html`<br />${inline(one)}`)}</p>`;
}

function isTableRule(line: string): boolean {
  return line.length <= LINE_LENGTH_MAX && TABLE_RULE.test(line);
}

function isParagraph(line: string): boolean {
  return (
    line.trim() !== '' &&
    line.length <= LINE_LENGTH_MAX &&
    !/^(?:\s*(?:```|~~~)|#{1,6}\s|>)/.test(line) &&
    !LIST_ITEM.test(line)
  );
}

function code(lines: Lines, fence: string): SafeHtml {
  lines.take();
  const content = lines.takeWhile((line) => !line.trimStart().startsWith(fence));
  lines.take();
  return html`<pre><code>${content.join('\n')}</code></pre>`;
}

/** One level lower: the page has a title of its own. */
function heading(level: number, title: string): SafeHtml {
  const text = inline(title);
  if (level === 1) return html`<h3>${text}</h3>`;
  if (level === 2) return html`<h4>${text}</h4>`;
  return html`<h5>${text}</h5>`;
}

function list(lines: Lines): SafeHtml {
  const isOrdered = LIST_ITEM.exec(lines.peek())?.[3] !== undefined;
  const items = lines
    .takeWhile((line) => LIST_ITEM.test(line))
    .map((line) => {
      const [, indent = '', , , text = ''] = LIST_ITEM.exec(line) ?? [];
      const box = /^\[([ xX])\]\s+(.*)$/.exec(text);
      const mark = box === null ? null : box[1] === ' ' ? '☐ ' : '☑ ';
      const depth = Math.min(3, Math.floor(indent.length / 2));
      return html`<li class="depth-${depth}">${mark}${inline(box?.[2] ?? text)}</li>`;
    });
  return isOrdered
    ? html`<ol>
        ${items}
      </ol>`
    : html`<ul>
        ${items}
      </ul>`;
}

function table(lines: Lines): SafeHtml {
  const head = cells(lines.take());
  lines.take();
  const rows = lines
    .takeWhile((line) => line.length <= LINE_LENGTH_MAX && line.includes('|'))
    .map(cells);
  return html`<div class="scroll">
    <table>
      <thead>
        <tr>
          ${head.map((cell) => html`<th>${inline(cell)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell) => html`<td>${inline(cell)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function cells(line: string): readonly string[] {
  const text = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'));
}

function inline(text: string): SafeHtml {
  const parts: HtmlValue[] = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(at, found.index), inlinePart(found));
    at = found.index + found[0].length;
  }
  parts.push(text.slice(at));
  return html`${parts}`;
}

function inlinePart(found: RegExpExecArray): HtmlValue {
  const [all, mono, strong, strong2, soft, soft2, struck, label = '', target, bare] = found;
  if (mono !== undefined) return html`<code>${mono}</code>`;
  const bold = strong ?? strong2;
  if (bold !== undefined) return html`<strong>${inline(bold)}</strong>`;
  const emphasis = soft ?? soft2;
  if (emphasis !== undefined) return html`<em>${inline(emphasis)}</em>`;
  if (struck !== undefined) return html`<s>${struck}</s>`;
  const address = webAddress(target ?? bare ?? '');
  if (address === undefined) return all;
  const shown = label === '' ? address : label;
  return html`<a href="${address}" rel="noreferrer noopener" target="_blank">${shown}</a>`;
}
