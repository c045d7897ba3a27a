import { shapeError } from '../../../language/peers/json-shape.ts';

/** Most characters of one row. */
const ROW_MAX = 1 << 20;

/** The fields of a row and the line where it begins. */
export type CsvRow = { readonly fields: readonly string[]; readonly line: number };

/**
 * Splits a chunked CSV (RFC 4180) into rows. Quoted fields may hold commas, newlines and doubled
 * quotes. Memory: one row.
 */
export class CsvRows {
  #line = 1;
  #rowLine = 1;
  #fields: string[] = [];
  #field = '';
  #length = 0;
  /**
   * plain: outside of quotes; quoted: inside; closed: behind the closing quote, which may be the
   * first of two.
   */
  #state: 'plain' | 'quoted' | 'closed' = 'plain';
  #isBegun = false;

  /** The rows that end in `chunk`; skips empty lines. Errors: FIELD_INVALID naming the line. */
  *feed(chunk: string): Generator<CsvRow> {
    for (const c of chunk) {
      if (c === '\n') this.#line += 1;
      this.#length += 1;
      if (this.#length > ROW_MAX) throw shapeError(`line ${this.#rowLine}`, 'the row is too long');
      if (this.#state === 'quoted') {
        if (c === '"') this.#state = 'closed';
        else this.#field += c;
      } else if (c === '"' && this.#state === 'closed') {
        this.#field += '"';
        this.#state = 'quoted';
      } else if (c === '"' && this.#field === '') {
        this.#state = 'quoted';
        this.#isBegun = true;
      } else if (c === ',') this.#endField();
      else if (c === '\n') {
        const row = this.#endRow();
        if (row !== undefined) yield row;
      } else if (c === '\r') continue;
      else if (this.#state === 'closed' || c === '"') {
        throw shapeError(`line ${this.#line}`, 'a quote stands within a field');
      } else {
        this.#field += c;
        this.#isBegun = true;
      }
    }
  }

  /** The last row, if no newline ended it. Errors: FIELD_INVALID for an open quote. */
  *finish(): Generator<CsvRow> {
    if (this.#state === 'quoted')
      throw shapeError(`line ${this.#rowLine}`, 'a quote is not closed');
    const row = this.#endRow();
    if (row !== undefined) yield row;
  }

  #endField(): void {
    this.#fields.push(this.#field);
    this.#field = '';
    this.#state = 'plain';
    this.#isBegun = true;
  }

  #endRow(): CsvRow | undefined {
    const isEmpty = !this.#isBegun;
    this.#endField();
    const row = { fields: this.#fields, line: this.#rowLine };
    this.#fields = [];
    this.#length = 0;
    this.#rowLine = this.#line;
    this.#isBegun = false;
    return isEmpty ? undefined : row;
  }
}
