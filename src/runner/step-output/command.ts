/** What a step notifies the runner by a line of its output. */
export type Command = {
  /** In lower case. */
  readonly name: string;
  /** By name in lower case, unescaped; properties without a value are left out. */
  readonly properties: ReadonlyMap<string, string>;
  readonly value: string;
};

const COMMAND_NAMES: ReadonlySet<string> = new Set([
  'add-mask',
  'add-matcher',
  'add-path',
  'debug',
  'echo',
  'endgroup',
  'error',
  'group',
  'notice',
  'remove-matcher',
  'save-state',
  'set-env',
  'set-output',
  'stop-commands',
  'warning',
]);

/** The order matters: `%25` last, or `%250A` would become a line break. */
const VALUE_ESCAPES = [
  ['%0D', '\r'],
  ['%0A', '\n'],
  ['%25', '%'],
] as const;
const PROPERTY_ESCAPES = [
  ['%0D', '\r'],
  ['%0A', '\n'],
  ['%3A', ':'],
  ['%2C', ','],
  ['%25', '%'],
] as const;
const BRACKET_ESCAPES = [
  ['%3B', ';'],
  ['%0D', '\r'],
  ['%0A', '\n'],
  ['%5D', ']'],
  ['%25', '%'],
] as const;

export function isCommandName(name: string): boolean {
  return COMMAND_NAMES.has(name.toLowerCase());
}

/** Whether a text of one or many lines can hold a command at all. Hot: two searches, no allocation. */
export function mayHoldCommand(text: string): boolean {
  return text.includes('::') || text.includes('##[');
}

/**
 * The command that `line` is: `::name key=value,key2=value2::value`, after white space at most, or
 * `##[name key=value;]value` anywhere in the line (GitHub's documentation of workflow commands; the
 * official runner's ActionCommand). Only known names count, in any letter case; `resumeToken` is one
 * more name.
 */
export function parseCommand(line: string, resumeToken?: string): Command | undefined {
  if (!mayHoldCommand(line)) {
    return undefined;
  }
  return parseColons(line.trimStart(), resumeToken) ?? parseBrackets(line, resumeToken);
}

function parseColons(line: string, resumeToken: string | undefined): Command | undefined {
  const end = line.startsWith('::') ? line.indexOf('::', 2) : -1;
  if (end === -1) {
    return undefined;
  }
  const head = splitHead(line.slice(2, end), resumeToken);
  return head === undefined
    ? undefined
    : {
        name: head.name,
        properties: readProperties(head.rest.trim(), ',', PROPERTY_ESCAPES),
        value: unescape(line.slice(end + 2), VALUE_ESCAPES),
      };
}

function parseBrackets(line: string, resumeToken: string | undefined): Command | undefined {
  const start = line.indexOf('##[');
  const end = start === -1 ? -1 : line.indexOf(']', start);
  if (end === -1) {
    return undefined;
  }
  const head = splitHead(line.slice(start + 3, end), resumeToken);
  return head === undefined
    ? undefined
    : {
        name: head.name,
        properties: readProperties(head.rest, ';', BRACKET_ESCAPES),
        value: unescape(line.slice(end + 1), BRACKET_ESCAPES),
      };
}

function splitHead(
  text: string,
  resumeToken: string | undefined,
): { readonly name: string; readonly rest: string } | undefined {
  const space = text.indexOf(' ');
  const name = (space === -1 ? text : text.slice(0, space)).toLowerCase();
  if (!COMMAND_NAMES.has(name) && name !== resumeToken?.toLowerCase()) {
    return undefined;
  }
  return { name, rest: space === -1 ? '' : text.slice(space + 1) };
}

type Escapes = readonly (readonly [escaped: string, plain: string])[];

function readProperties(text: string, separator: string, escapes: Escapes): Map<string, string> {
  const properties = new Map<string, string>();
  if (text === '') {
    return properties;
  }
  for (const part of text.split(separator)) {
    const equals = part.indexOf('=');
    const name = part.slice(0, Math.max(0, equals)).trim().toLowerCase();
    const value = part.slice(equals + 1);
    if (name !== '' && value !== '') {
      properties.set(name, unescape(value, escapes));
    }
  }
  return properties;
}

function unescape(text: string, escapes: Escapes): string {
  if (!text.includes('%')) {
    return text;
  }
  let result = text;
  for (const [escaped, plain] of escapes) {
    result = result.replaceAll(escaped, plain);
  }
  return result;
}
