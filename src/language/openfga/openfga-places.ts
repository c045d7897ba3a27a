import type { Place } from '../peers/peer-model.ts';

/** A file of the language of OpenFGA. */
export type DslFile = { readonly name: string; readonly text: string };

/**
 * Places of the declarations of types, relations and conditions, in words. The library's result
 * does not have them.
 */
export class OpenFgaPlaces {
  readonly #lines = new Map<string, string>();

  /** Without files, places have no lines; JSON has none. */
  constructor(files: readonly DslFile[]) {
    for (const { name, text } of files) {
      let type = '';
      text.split('\n').forEach((line, index) => {
        const [, word, declared] =
          /^\s*(?:extend\s+)?(type|define|condition)\s+([^\s:(]+)/.exec(line) ?? [];
        if (word === undefined || declared === undefined) return;
        if (word === 'type') type = declared;
        const key = word === 'define' ? `define ${type} ${declared}` : `${word} ${declared}`;
        const place = `${name === '' ? '' : `${name}, `}line ${index + 1}`;
        if (!this.#lines.has(key)) this.#lines.set(key, place);
      });
    }
  }

  /**
   * Compares relations of a type by the order of their declarations: the library sorts them by
   * name.
   */
  compareRelations(type: string, one: string, other: string): number {
    const order = (name: string): number =>
      [...this.#lines.keys()].indexOf(`define ${type} ${name}`);
    return order(one) - order(other);
  }

  type(name: string): Place {
    return this.#withLine(`type ${name}`, `type ${name}`);
  }

  relation(type: string, name: string): Place {
    return this.#withLine(`define ${type} ${name}`, `type ${type}, relation ${name}`);
  }

  condition(name: string): Place {
    return this.#withLine(`condition ${name}`, `condition ${name}`);
  }

  #withLine(key: string, place: Place): Place {
    const line = this.#lines.get(key);
    return line === undefined ? place : `${place} (${line})`;
  }
}
