import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { usage } from '../../command-line/parse-words.ts';
import type { Terminal } from '../../command-line/terminal.ts';
import { AppError } from '../../shared/app-error.ts';
import { parseDotenv } from '../secrets/dotenv-parser.ts';
import type { CommandLine } from './arguments.ts';

/**
 * The secrets that the line names: those of the file, then `-s NAME=VALUE`, and for a bare `-s NAME` what the
 * environment or the person at the terminal says. Undefined where it names none.
 * Errors: INVALID_REQUEST, never with a value.
 */
export async function secretsOf(
  line: CommandLine,
  environment: Readonly<Record<string, string | undefined>>,
  notes: Terminal,
): Promise<Readonly<Record<string, string>> | undefined> {
  if (line.secrets.length === 0 && line.secretFile === undefined) return undefined;
  const values = new Map(line.secretFile === undefined ? [] : await secretsIn(line.secretFile));
  for (const { name, value } of line.secrets) {
    values.set(name.toUpperCase(), value ?? environment[name] ?? (await asked(name, notes)));
  }
  return Object.fromEntries(values);
}

async function secretsIn(path: string): Promise<readonly (readonly [string, string])[]> {
  const { entries, skipped } = parseDotenv(await contentOf('secret-file', path));
  const [first] = skipped;
  if (first !== undefined) throw usage(`--secret-file ${path}:${first.line}: ${first.reason}`);
  return entries.map(({ name, value }) => [name, value]);
}

/** Read without showing it. */
async function asked(name: string, notes: Terminal): Promise<string> {
  if (!process.stdin.isTTY) {
    throw usage(
      `--secret ${name}: has no value, the environment has none, and nobody can be asked`,
    );
  }
  notes.line(`${name}:`);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  try {
    return await reader.question('');
  } finally {
    reader.close();
  }
}

/** The JSON of `-e`. Errors: INVALID_REQUEST. */
export async function payloadOf(path: string | undefined): Promise<unknown> {
  if (path === undefined) return undefined;
  const content = path === '-' ? await readAll(process.stdin) : await contentOf('payload', path);
  try {
    return JSON.parse(content) as unknown;
  } catch (error) {
    throw new AppError('INVALID_REQUEST', `--payload ${path}: is no readable JSON`, {}, error);
  }
}

async function contentOf(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new AppError('INVALID_REQUEST', `--${option} ${path}: cannot be read`, {}, error);
  }
}
