import { realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { isBlockedName, isSuspiciousName } from '../host/process/step-environment.ts';
import type { TextMask } from '../model/ports.ts';
import { openWithin } from '../storage/contained-file.ts';
import type { Masker } from './masker.ts';

/** Of each of the files of a step: GITHUB_ENV, GITHUB_OUTPUT, GITHUB_STATE, GITHUB_PATH, summary. */
const COMMAND_FILE_BYTES_MAX = 1024 * 1024;
/** The part of a line, name or delimiter that a message shows. */
const SHOWN_CHARACTERS_MAX = 80;

/**
 * The text of a file that a step wrote for the runner: UTF-8, or UTF-16 with a byte order mark, which is
 * left out. '' when there is no such file. What a step put in its place is read only where it lies within
 * `roots` (real paths; default its own folder): links to files of the runner are not followed.
 * Errors: RESULT_TOO_LARGE above 1 MiB (metadata.bytes), INVALID_VALUE for a file elsewhere, one with other
 * names, and what is no file, and those of the file system.
 */
export async function readCommandFile(path: string, roots?: readonly string[]): Promise<string> {
  let file;
  try {
    file = await openWithin(path, roots ?? [await realpath(dirname(path))]);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return '';
    }
    throw error;
  }
  try {
    const { size, nlink } = await file.stat();
    // A second name may be that of any file of this user.
    if (nlink > 1) throw new AppError('INVALID_VALUE', 'The file has other names');
    if (size > COMMAND_FILE_BYTES_MAX) {
      throw new AppError(
        'RESULT_TOO_LARGE',
        `The file holds ${Math.ceil(size / 1024)} KiB, at most ${COMMAND_FILE_BYTES_MAX / 1024} KiB are read`,
        { bytes: String(size) },
      );
    }
    return size === 0 ? '' : decodeCommandFile(await file.readFile());
  } finally {
    await file.close();
  }
}

/** UTF-8, or UTF-16 with a byte order mark, which is left out. */
export function decodeCommandFile(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) {
    return new TextDecoder('utf-16le').decode(bytes);
  }
  if (bytes[0] === 0xfe && bytes[1] === 0xff) {
    return new TextDecoder('utf-16be').decode(bytes);
  }
  // Takes the byte order mark off.
  return new TextDecoder('utf-8').decode(bytes);
}

/**
 * The pairs of GITHUB_OUTPUT and GITHUB_STATE: lines `name=value`, or `name<<delimiter`, lines, the
 * delimiter alone on a line. Whichever of `=` and `<<` comes first in a line decides. Empty lines are
 * skipped, a later pair wins, lines end with LF or CRLF, line ends within a value stay as they are.
 * Errors: INVALID_VALUE, with the number of the line, in the words of the official runner and some more. `mask`
 * hides secrets in what the message shows of the file: it is shortened, so that this cannot be done later.
 * Source: actions/runner, Worker, FileCommandManager, EnvFileKeyValuePairs.
 */
export function parsePairs(text: string, mask: TextMask): Map<string, string> {
  const pairs = new Map<string, string>();
  const bare = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const reader = createLineReader(bare, (part) => shortened(mask(part)));
  for (let line = reader.next(); line !== undefined; line = reader.next()) {
    if (line.text !== '') {
      const [name, value] = readPair(line, reader);
      pairs.set(name, value);
    }
  }
  return pairs;
}

function shortened(text: string): string {
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
}

/** What GITHUB_ENV sets for the steps that follow. */
export type EnvironmentChange = {
  readonly values: ReadonlyMap<string, string>;
  /** Names that may not be set: an error annotation each. */
  readonly refused: readonly string[];
  /** Names among `values` that load code into other programs: a warning annotation each. */
  readonly suspicious: readonly string[];
};

/** GITHUB_ENV; the form and the errors of parsePairs. */
export function parseEnvFile(text: string, mask: TextMask): EnvironmentChange {
  const values = new Map<string, string>();
  const refused: string[] = [];
  const suspicious: string[] = [];
  for (const [name, value] of parsePairs(text, mask)) {
    if (isBlockedName(name)) {
      refused.push(name);
    } else {
      values.set(name, value);
    }
    if (isSuspiciousName(name)) {
      suspicious.push(name);
    }
  }
  return { values, refused, suspicious };
}

/** The folders of GITHUB_PATH, a line each, in the order in which they were added. */
export function parsePathFile(text: string): string[] {
  const bare = text.startsWith('\uFEFF') ? text.slice(1) : text;
  return bare.split(/\r\n|\r|\n/u).filter((line) => line !== '');
}

/** The Markdown of GITHUB_STEP_SUMMARY, masked line by line. '' when nothing was written. */
export function maskSummary(text: string, masker: Masker): string {
  const bare = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (!masker.contains(bare)) {
    return bare;
  }
  const lines = bare.split('\n').map((line) => masker.mask(line));
  // Secrets that run over several lines.
  return masker.mask(lines.join('\n'));
}

type Line = {
  readonly text: string;
  readonly number: number;
  /** '' when the text ended without one. */
  readonly ending: string;
  /** Where the next line starts. */
  readonly next: number;
};

interface LineReader {
  next(): Line | undefined;
  slice(start: number, end: number): string;
  /** What may be seen of a part. */
  show(part: string): string;
}

function createLineReader(text: string, show: (part: string) => string): LineReader {
  let at = 0;
  let number = 0;
  return {
    next() {
      if (at >= text.length) {
        return undefined;
      }
      const start = at;
      number += 1;
      const feed = text.indexOf('\n', at);
      at = feed === -1 ? text.length : feed + 1;
      const hasReturn = feed > start && text[feed - 1] === '\r';
      const ending = feed === -1 ? '' : hasReturn ? '\r\n' : '\n';
      return { text: text.slice(start, at - ending.length), number, ending, next: at };
    },
    slice: (start, end) => text.slice(start, end),
    show,
  };
}

function readPair(line: Line, reader: LineReader): [name: string, value: string] {
  const equals = line.text.indexOf('=');
  const heredoc = line.text.indexOf('<<');
  const isPlain = equals !== -1 && (heredoc === -1 || equals < heredoc);
  const refuse = (official: string, problem: string): never => {
    throw invalid(line, `Invalid format '${reader.show(line.text)}'.${official}`, problem);
  };
  if (!isPlain && heredoc === -1) refuse('', 'it is neither name=value nor name<<delimiter');
  const name = line.text.slice(0, isPlain ? equals : heredoc);
  if (name === '') refuse(' Name must not be empty.', 'nothing stands in front of its sign');
  if (isPlain) {
    return [name, line.text.slice(equals + 1)];
  }
  const delimiter = line.text.slice(heredoc + 2);
  if (delimiter === '') refuse(' Delimiter must not be empty.', 'nothing follows its <<');
  return [name, readHeredoc(line, name, delimiter, reader)];
}

function readHeredoc(opening: Line, name: string, delimiter: string, reader: LineReader): string {
  const start = opening.next;
  let end = start;
  let near: number | undefined;
  const bare = delimiter.trim();
  for (;;) {
    const line = reader.next();
    if (line === undefined) {
      const [value, shown] = [reader.show(name), reader.show(delimiter)];
      const problem = `the value of '${value}' begins there, and no line after it is ${shown} alone`;
      const hint = hintOf(delimiter, shown, near);
      throw invalid(
        opening,
        `Invalid value. Matching delimiter not found '${shown}'.`,
        problem + hint,
      );
    }
    if (line.text === delimiter) {
      return reader.slice(start, end);
    }
    if (near === undefined && line.text.trim() === bare) near = line.number;
    if (line.ending === '') {
      const [value, shown] = [reader.show(name), reader.show(delimiter)];
      const problem = `the value of '${value}' begins there, and ends without a line break before ${shown}`;
      throw invalid(opening, 'Invalid value. EOF marker missing new line.', problem);
    }
    end = line.next - line.ending.length;
  }
}

/** What is likely to have gone wrong. */
function hintOf(delimiter: string, shown: string, near: number | undefined): string {
  if (near !== undefined) return `; line ${near} has it with other blanks around it`;
  return /^(['"]).*\1$/.test(delimiter.trim())
    ? `; unlike in a shell, quotes are a part of the delimiter, ${shown}: leave them out`
    : '';
}

function invalid(line: Line, official: string, problem: string): AppError {
  return new AppError('INVALID_VALUE', `${official} Line ${line.number}: ${problem}`, {
    line: String(line.number),
  });
}
