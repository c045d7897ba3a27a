import { HEADER_BYTES_MAX } from './http-limits.ts';
import type { RawRequest } from './raw-message.ts';

/** `read` needs more bytes. */
export const HEAD_PARTIAL = -1;
/** `read` found what is no head; `problem` and `statusCode` say why. */
export const HEAD_REFUSED = -2;

const FIELDS_MAX = 128;
const TAB = 9;
const LF = 10;
const CR = 13;
const SP = 32;
const COLON = 58;
const ZERO = 48;
const NINE = 57;
const DEL = 127;
const VERSION = Buffer.from('HTTP/');
/** " HTTP/1.1" and its line end, from the blank on. */
const VERSION_BYTES = 11;
const ABSOLUTE = /^https?:\/\/([^/?#]*)([^#]*)$/i;

/** tchar of RFC 9110 §5.6.2: 1, and 2 for those that lower case changes. */
const TOKEN = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
  TOKEN[char.charCodeAt(0)] = 1;
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') TOKEN[char.charCodeAt(0)] = 2;

/**
 * The head of the HTTP/1 request that is being taken (RFC 9112 §§2–5). One for a listener, filled anew by each request:
 * it may be used until the handler returns. Hot.
 */
export class Http1Head implements RawRequest {
  readonly #marks = new Int32Array(FIELDS_MAX * 5);
  #text = '';
  #count = 0;
  #method = '';
  #path = '';
  #query = '';
  #authority: string | undefined;
  #parameters: readonly string[] = [];
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minorVersion = 1;
  isNameless = false;
  problem = '';
  statusCode: 400 | 431 | 505 = 400;

  /**
   * Reads the head that begins at `from`. Returns where it ends, HEAD_PARTIAL or HEAD_REFUSED; longer than
   * `HEADER_BYTES_MAX` is refused. O(bytes of the head).
   */
  read(bytes: Buffer, from: number, to: number): number {
    let start = from;
    // One that a client left behind its last body (RFC 9112 §2.2).
    while (start + 1 < to && bytes[start] === CR && bytes[start + 1] === LF) start += 2;
    const end = this.#read(bytes, start, Math.min(to, from + HEADER_BYTES_MAX));
    if (end === HEAD_PARTIAL && to - from >= HEADER_BYTES_MAX) {
      return this.#refuse('the head is too long', 431);
    }
    return end;
  }

  #read(bytes: Buffer, from: number, to: number): number {
    if (from === to || (from + 1 === to && bytes[from] === CR)) return HEAD_PARTIAL;
    let at = tokenEnd(bytes, from, to);
    if (at === to) return HEAD_PARTIAL;
    if (at === from || bytes[at] !== SP) return this.#refuse('the request line has no method');
    const methodEnd = at;
    const targetStart = at + 1;
    at = targetStart;
    while (at < to && (bytes[at] ?? 0) > SP && bytes[at] !== DEL) at += 1;
    if (at === to) return HEAD_PARTIAL;
    if (at === targetStart) return this.#refuse('the request line has no target');
    const targetEnd = at;
    if (bytes[at] !== SP) {
      return bytes[at] === CR
        ? this.#refuse('the request line names no version', 505)
        : this.#refuse('the target has a character that it may not have');
    }
    const version = this.#version(bytes, at + 1, to);
    if (version < 0) return version;
    const end = this.#fields(bytes, at + VERSION_BYTES, to, from);
    if (end < 0) return end;
    this.minorVersion = version;
    this.#text = bytes.toString('latin1', from, end);
    this.#method = this.#text.slice(0, methodEnd - from);
    this.#parameters = [];
    return this.#target(this.#text.slice(targetStart - from, targetEnd - from))
      ? end
      : HEAD_REFUSED;
  }

  /** The minor version of what stands at `from`, or HEAD_PARTIAL or HEAD_REFUSED. */
  #version(bytes: Buffer, from: number, to: number): number {
    for (let i = 0; i < VERSION.length; i++) {
      if (from + i === to) return HEAD_PARTIAL;
      if (bytes[from + i] !== VERSION[i]) return this.#refuse('the version is no version of HTTP');
    }
    const at = from + VERSION.length;
    if (at + 5 > to) return HEAD_PARTIAL;
    const [major = 0, point, minor = 0, cr, lf] = bytes.subarray(at, at + 5);
    const isVersion = major >= ZERO && major <= NINE && minor >= ZERO && minor <= NINE;
    if (!isVersion || point !== 46 || cr !== CR || lf !== LF) {
      return this.#refuse('the request line does not end behind the version');
    }
    if (major !== ZERO + 1 || minor > ZERO + 1) {
      return this.#refuse('the version of HTTP is another one', 505);
    }
    return minor - ZERO;
  }

  #fields(bytes: Buffer, from: number, to: number, origin: number): number {
    const marks = this.#marks;
    let count = 0;
    for (let at = from; ;) {
      if (at === to) return HEAD_PARTIAL;
      if (bytes[at] === CR) {
        if (at + 1 === to) return HEAD_PARTIAL;
        if (bytes[at + 1] !== LF) return this.#refuse('a line of the head does not end with CR LF');
        this.#count = count;
        return at + 2;
      }
      const nameStart = at;
      let hasUpper = 0;
      for (let kind = TOKEN[bytes[at] ?? 0]; at < to && kind !== 0; kind = TOKEN[bytes[at] ?? 0]) {
        if (kind === 2) hasUpper = 1;
        at += 1;
      }
      if (at === to) return HEAD_PARTIAL;
      if (at === nameStart || bytes[at] !== COLON) {
        return this.#refuse('a header field is no name with a colon behind it');
      }
      const nameEnd = at;
      at += 1;
      while (at < to && (bytes[at] === SP || bytes[at] === TAB)) at += 1;
      const valueStart = at;
      while (at < to && ((bytes[at] ?? 0) >= SP || bytes[at] === TAB) && bytes[at] !== DEL) at += 1;
      if (at + 1 >= to && (at === to || bytes[at] === CR)) return HEAD_PARTIAL;
      if (bytes[at] !== CR || bytes[at + 1] !== LF) {
        return this.#refuse('a header field has a character that it may not have');
      }
      if (count === FIELDS_MAX) return this.#refuse('there are too many header fields', 431);
      let valueEnd = at;
      while (valueEnd > valueStart && (bytes[valueEnd - 1] === SP || bytes[valueEnd - 1] === TAB)) {
        valueEnd -= 1;
      }
      const mark = count * 5;
      marks[mark] = nameStart - origin;
      marks[mark + 1] = nameEnd - origin;
      marks[mark + 2] = valueStart - origin;
      marks[mark + 3] = valueEnd - origin;
      marks[mark + 4] = hasUpper;
      count += 1;
      at += 2;
    }
  }

  /** Origin form, absolute form and `*` (RFC 9112 §3.2); an authority is for CONNECT, which nobody serves. */
  #target(target: string): boolean {
    let rest = target;
    this.#authority = undefined;
    if (!target.startsWith('/') && target !== '*' && this.#method !== 'CONNECT') {
      const absolute = ABSOLUTE.exec(target);
      if (absolute === null) {
        this.#refuse('the target is no path');
        return false;
      }
      // It stands in for Host.
      this.#authority = absolute[1] ?? '';
      rest = absolute[2] ?? '';
    }
    const query = rest.indexOf('?');
    this.#path = query < 0 ? rest : rest.slice(0, query);
    if (this.#path === '') this.#path = '/';
    this.#query = query < 0 ? '' : rest.slice(query + 1);
    return true;
  }

  #refuse(problem: string, statusCode: 400 | 431 | 505 = 400): number {
    this.problem = problem;
    this.statusCode = statusCode;
    return HEAD_REFUSED;
  }

  forEach(onHeader: (name: string, value: string) => void): void {
    const marks = this.#marks;
    const text = this.#text;
    let hasHost = false;
    for (let i = 0; i < this.#count; i++) {
      const mark = i * 5;
      let name = text.slice(marks[mark], marks[mark + 1]);
      if (marks[mark + 4] === 1) name = name.toLowerCase();
      const value = text.slice(marks[mark + 2], marks[mark + 3]);
      if (name !== 'host') onHeader(name, value);
      else {
        hasHost = true;
        onHeader(name, this.#authority ?? value);
      }
    }
    // HTTP/1.0 has none.
    this.isNameless = !hasHost && this.minorVersion === 0 && this.#authority === undefined;
    if (!hasHost && this.minorVersion === 0) onHeader('host', this.#authority ?? '');
  }

  getUrl(): string {
    return this.#path;
  }

  getCaseSensitiveMethod(): string {
    return this.#method;
  }

  getQuery(): string {
    return this.#query;
  }

  getParameter(index: number): string | undefined {
    return this.#parameters[index];
  }

  /** Of the route that takes the request. */
  setParameters(parameters: readonly string[]): void {
    this.#parameters = parameters;
  }
}

function tokenEnd(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && TOKEN[bytes[at] ?? 0] !== 0) at += 1;
  return at;
}
