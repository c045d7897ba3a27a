/** HTML that was made by `html`: everything that was put into it is escaped. */
export class SafeHtml {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** What may be put into a template; nothing is written for null, undefined and false. */
export type HtmlValue =
  | string
  | number
  | null
  | undefined
  | false
  | SafeHtml
  | readonly HtmlValue[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * A template whose values are escaped for text and for quoted attributes (HTML §13.1.2); attributes must
 * be quoted in the template, and no value may stand in a tag name, a script or a style.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): SafeHtml {
  let text = parts[0] ?? '';
  values.forEach((value, index) => {
    text += textOf(value) + (parts[index + 1] ?? '');
  });
  return new SafeHtml(text);
}

/** An address that a link may have: http and https only, undefined for all others. */
export function webAddress(text: string): string | undefined {
  return /^https?:\/\/[^\s]+$/i.test(text) ? text : undefined;
}

function textOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof SafeHtml) return value.text;
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(value);
  return value.map(textOf).join('');
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
