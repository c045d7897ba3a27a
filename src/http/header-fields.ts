import { isDigits } from './first-request.ts';
import type { RawRequest } from './raw-message.ts';

/** More than uWebSockets.js and node:http let through. */
const FIELDS_MAX = 128;

/**
 * The header fields of the request that is being taken, read in one pass. One for a listener, filled anew by
 * each request: its fields are there until the handler returns. Hot.
 */
export class HeaderFields {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #count = 0;
  #hosts = 0;
  #lengths = 0;
  #encodings = 0;
  #problem = '';
  readonly #add = (name: string, value: string): void => this.#field(name, value);

  /**
   * Reads the fields of `request`. Returns what makes the message one that another reader may end elsewhere,
   * or '' (RFC 9112 §§3.2, 6.1–6.3). Cost: a call and two strings a field.
   */
  read(request: RawRequest): string {
    this.#count = 0;
    this.#hosts = 0;
    this.#lengths = 0;
    this.#encodings = 0;
    this.#problem = '';
    request.forEach(this.#add);
    if (this.#problem !== '') return this.#problem;
    if (this.#hosts !== 1) return 'one Host is needed';
    if (this.#lengths > 0 && this.#encodings > 0) {
      return 'Content-Length and Transfer-Encoding exclude each other';
    }
    return '';
  }

  /** The value of a field by its lower-case name, of several the first; '' when absent. */
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
      case 4:
        if (name === 'host') this.#hosts += 1;
        return;
      case 14:
        if (name !== 'content-length') return;
        this.#lengths += 1;
        if (this.#lengths > 1) this.#problem = 'Content-Length is given twice';
        else if (!isDigits(value)) this.#problem = 'Content-Length is no number';
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
