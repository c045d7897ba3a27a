import type { RawRequest } from './raw-message.ts';

const LENGTH_DIGITS_MAX = 15;

const FIELDS_MAX = 128;

/**
 * Header fields of the request that is being handled, read in one pass. A listener has one instance, which each request
 * refills: the fields are valid until the handler returns. Hot.
 */
export class HeaderFields {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #count = 0;
  #hosts = 0;
  #lengths = 0;
  #encodings = 0;
  #credentials = 0;
  #problem = '';
  /** Whether the request has no Host, as HTTP/1.0 allows. */
  isNameless = false;
  /** The value of Content-Length; 0 when absent. */
  contentLength = 0;
  /** The values of Connection, all fields of that name, in lower case. */
  connection = '';
  /** The value of Expect, in lower case. */
  expectation = '';
  readonly #add = (name: string, value: string): void => this.#field(name, value);

  /**
   * Reads the fields of `request`. Returns the problem of a message whose end, host or credential another reader may see
   * differently (RFC 9112 §§3.2, 6.1–6.3, RFC 9110 §5.3). Also refuses too many fields. Returns '' where there is no problem.
   * Cost: a call and two strings a field.
   */
  read(request: RawRequest): string {
    this.#count = 0;
    this.#hosts = 0;
    this.#lengths = 0;
    this.#encodings = 0;
    this.#credentials = 0;
    this.#problem = '';
    this.contentLength = 0;
    this.connection = '';
    this.expectation = '';
    request.forEach(this.#add);
    this.isNameless = request.isNameless;
    if (this.#problem !== '') return this.#problem;
    if (this.#hosts !== 1) return 'one Host is needed';
    if (this.#lengths > 0 && this.#encodings > 0) {
      return 'Content-Length and Transfer-Encoding exclude each other';
    }
    return '';
  }

  /** Whether the body is chunked. */
  get isChunked(): boolean {
    return this.#encodings > 0;
  }

  /** Whether `option`, in lower case, is among the values of Connection. */
  hasConnectionOption(option: string): boolean {
    if (this.connection === '') return false;
    return this.connection.split(',').some((one) => one.trim() === option);
  }

  /** The value of the first field of a lower-case name; '' when absent. */
  get(lowerCaseName: string): string {
    const names = this.#names;
    for (let i = 0; i < this.#count; i++) {
      if (names[i] === lowerCaseName) return this.#values[i] ?? '';
    }
    return '';
  }

  forEach(onField: (name: string, value: string) => void): void {
    for (let i = 0; i < this.#count; i++) onField(this.#names[i] ?? '', this.#values[i] ?? '');
  }

  #field(name: string, value: string): void {
    if (this.#count === FIELDS_MAX) {
      this.#problem = 'there are too many header fields';
      return;
    }
    this.#names[this.#count] = name;
    this.#values[this.#count] = value;
    this.#count += 1;
    switch (name.length) {
      case 6:
        if (name === 'expect') this.expectation = value.toLowerCase();
        return;
      case 10:
        if (name === 'connection') this.connection += `${value.toLowerCase()},`;
        return;
      case 13:
        if (name !== 'authorization') return;
        this.#credentials += 1;
        if (this.#credentials > 1) this.#problem = 'Authorization is given twice';
        return;
      case 4:
        if (name === 'host') this.#hosts += 1;
        return;
      case 14:
        if (name !== 'content-length') return;
        this.#lengths += 1;
        if (this.#lengths > 1) this.#problem = 'Content-Length is given twice';
        else if (!isDigits(value)) this.#problem = 'Content-Length is no number';
        else this.contentLength = Number(value);
        return;
      case 17:
        if (name !== 'transfer-encoding') return;
        this.#encodings += 1;
        if (this.#encodings > 1 || value.toLowerCase() !== 'chunked') {
          this.#problem = 'Transfer-Encoding may be chunked alone';
        }
        return;
      default:
    }
  }
}

/** Whether a Content-Length is digits alone, few enough for an exact number. */
function isDigits(text: string): boolean {
  if (text === '' || text.length > LENGTH_DIGITS_MAX) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}
