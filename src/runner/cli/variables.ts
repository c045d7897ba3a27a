import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { usage } from '../../command-line/parse-words.ts';
import { mustBeVariables } from '../model/given-variables.ts';

const FILE_BYTES_MAX = 1024 * 1024;

/**
 * The variables of `--env-file` and `--env`, the latter over the former, later ones over earlier ones; a
 * `--env NAME` without a value takes that of this process. Undefined when neither is given.
 * Errors: INVALID_REQUEST that names the file or the variable.
 */
export function variablesOf(
  files: readonly string[],
  texts: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | undefined {
  if (files.length === 0 && texts.length === 0) return undefined;
  const entries = [
    ...files.flatMap(entriesOfFile),
    ...texts.map((text) => entryOf(text, environment)),
  ];
  return mustBeVariables(entries);
}

function entriesOfFile(path: string): readonly (readonly [string, string])[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw usage(`--env-file ${path}: cannot be read (${why})`);
  }
  if (text.length > FILE_BYTES_MAX) throw usage(`--env-file ${path}: is larger than 1 MiB`);
  return Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']);
}

function entryOf(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): readonly [string, string] {
  const end = text.indexOf('=');
  if (end > 0) return [text.slice(0, end), text.slice(end + 1)];
  const value = end < 0 ? environment[text] : undefined;
  if (value === undefined)
    throw usage(`--env ${text}: must be NAME=VALUE, or the name of a variable`);
  return [text, value];
}
