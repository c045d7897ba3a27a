import { type Node, Scalar, type ScalarTag, type Tags, isScalar } from 'yaml';
import { numberFromText } from './number-text.ts';

const CORE = 'tag:yaml.org,2002:';
const SCALAR_TAGS: ReadonlySet<string> = new Set(['bool', 'float', 'int', 'null', 'str']);
const NOT_A_NUMBER = /^\.nan$/i;
const COLLECTION_TAGS: ReadonlySet<string> = new Set(['map', 'seq']);

/** The core schema with tags that refuse what they do not fit, as `!!int test`, and take `!!float 1`. */
export function withStrictTags(tags: Tags): Tags {
  return [
    explicitTag('bool', /^(?:true|True|TRUE|false|False|FALSE)$/, (text) => /^t/i.test(text)),
    explicitTag('int', /^(?:[-+]?\d+|0o[0-7]+|0x[0-9a-fA-F]+)$/, numberFrom),
    explicitTag(
      'float',
      /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|0o[0-7]+|0x[0-9a-fA-F]+)$/,
      numberFrom,
    ),
    explicitTag('null', /^(?:~|null|Null|NULL)?$/, () => null),
    ...tags,
  ];
}

/** What is wrong with the explicit tag of a node, in GitHub's words. */
export function tagProblem(node: Node): string | undefined {
  const { tag } = node as { readonly tag?: string };
  if (tag === undefined) {
    return undefined;
  }
  const name = tag.startsWith(CORE) ? tag.slice(CORE.length) : '';
  const isKnown = isScalar(node) ? SCALAR_TAGS.has(name) : COLLECTION_TAGS.has(name);
  if (!isKnown) {
    return `Unexpected tag '${tag}'`;
  }
  const isQuoted = isScalar(node) && node.type !== Scalar.PLAIN;
  return isQuoted && name !== 'str'
    ? `The scalar style '${styleOf(node)}' is not valid with the tag '${tag}'`
    : undefined;
}

function styleOf(node: Scalar): string {
  const name = String(node.type).toLowerCase().split('_')[0] ?? '';
  const style = name.charAt(0).toUpperCase() + name.slice(1);
  return node.type === Scalar.QUOTE_DOUBLE || node.type === Scalar.QUOTE_SINGLE
    ? `${node.type === Scalar.QUOTE_DOUBLE ? 'Double' : 'Single'}Quoted`
    : style;
}

function explicitTag(name: string, form: RegExp, valueFrom: (text: string) => unknown): ScalarTag {
  const tag = `${CORE}${name}`;
  return {
    tag,
    resolve: (text, onError) => {
      const value = form.test(text) ? valueFrom(text) : undefined;
      const isBeyond = Number.isNaN(value) && !NOT_A_NUMBER.test(text);
      if (value !== undefined && !isBeyond) return value;
      onError(`The value '${text}' is invalid for the type '${tag}'`);
      return text;
    },
  };
}

function numberFrom(text: string): number {
  if (/^[-+]?\.inf$/i.test(text)) {
    return text.startsWith('-') ? -Infinity : Infinity;
  }
  return NOT_A_NUMBER.test(text) ? Number.NaN : numberFromText(text);
}
