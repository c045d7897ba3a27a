import { once } from 'node:events';
import { createWriteStream, renameSync, rmSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { usage } from '../../command-line/parse-words.ts';
import { importPeerModel } from '../../language/peers/import-peer-model.ts';
import { shapeError } from '../../language/peers/json-shape.ts';
import { type TupleNaming, tupleLine } from '../../language/peers/tuple-line.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { fileError } from '../core/files.ts';
import { isOfContent, say } from './files/model-files.ts';
import { readPeerModel } from './files/read-peer-file.ts';
import { csvTuples, jsonTuples, textTuples, type TupleSource } from './tuples/read-tuples.ts';
import { yamlTuples } from './tuples/yaml-tuples.ts';

const FLUSH_CHARACTERS = 64 * 1024;
/** Skipped tuples that are named; all are counted. */
const SKIPPED_SHOWN_MAX = 20;
const FORMATS = { json: jsonTuples, csv: csvTuples, text: textTuples } as const;

export type TupleOptions = {
  readonly file: string;
  readonly out: string;
  /** json, csv, yaml or text; undefined: derived from the name of the file. */
  readonly format: string | undefined;
  readonly from: string | undefined;
  /** A file of the peer with the model that names and the type of users are taken from. */
  readonly model: string | undefined;
  readonly userType: string | undefined;
  /** True if tuples that cannot be converted are skipped and counted. */
  readonly skips: boolean;
};

/**
 * Writes tuples of OpenFGA or SpiceDB as lines for `:import`. JSON, CSV and text are streamed, so
 * that memory does not grow with them. The output file appears as a whole or not at all. Resolves
 * to the exit code.
 * Errors: INVALID_REQUEST, FILE_INVALID.
 */
export async function convertTuples(line: CliLine, options: TupleOptions): Promise<number> {
  const { file, out } = options;
  const part = out === '-' ? undefined : `${out}.part`;
  try {
    const { tuples, naming } = open(options);
    const sink = part === undefined ? process.stdout : await create(part);
    const counts = await write(tuples, naming, sink, options.skips ? line : undefined);
    if (part !== undefined) {
      sink.end();
      await once(sink, 'finish');
      renameSync(part, out);
    }
    const skipped = counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`;
    say(line, `${file}: ${counts.written} tuples written${skipped}`);
    return EXIT_OK;
  } catch (error) {
    if (part !== undefined) rmSync(part, { force: true });
    if (isOfContent(error)) {
      say(line, error.message);
      return EXIT_NO;
    }
    if (isOfFile(error)) throw fileError(file, error.message);
    throw error;
  }
}

/**
 * Opens a file for writing, so that it exists and can be removed. Errors: those of the file system.
 */
async function create(path: string): Promise<Writable> {
  const sink = createWriteStream(path);
  await once(sink, 'open');
  return sink;
}

type OpenedTuples = {
  readonly tuples: Iterable<TupleSource> | AsyncIterable<TupleSource>;
  readonly naming: TupleNaming;
};

function open(options: TupleOptions): OpenedTuples {
  const { file, format = formatOf(file), model, userType = 'user' } = options;
  if (format !== 'yaml')
    return { tuples: sourcesOf(file, format), naming: namingOf(options, model) };
  const { own, files, hasModel } = yamlTuples(file);
  const all = async function* (): AsyncGenerator<TupleSource> {
    yield* own;
    for (const one of files) yield* sourcesOf(one, formatOf(one, 'text'));
  };
  return {
    tuples: all(),
    naming: namingOf({ ...options, userType }, model ?? (hasModel ? file : undefined)),
  };
}

function sourcesOf(
  file: string,
  format: string,
): AsyncIterable<TupleSource> | Iterable<TupleSource> {
  if (format === 'yaml') {
    const { own, files } = yamlTuples(file);
    if (files.length > 0) throw shapeError(file, 'names further files, and is named by one');
    return own;
  }
  if (format !== 'json' && format !== 'csv' && format !== 'text') {
    throw usage('--format is json, csv, yaml or text');
  }
  return FORMATS[format](file);
}

function formatOf(file: string, otherwise?: string): string {
  const ending = /\.([a-z]+)$/i.exec(file)?.[1]?.toLowerCase() ?? '';
  if (['json', 'jsonl', 'ndjson'].includes(ending)) return 'json';
  if (['yaml', 'yml', 'zaml'].includes(ending)) return 'yaml';
  if (ending === 'csv') return 'csv';
  if (ending === 'txt' || ending === 'zed') return 'text';
  if (otherwise !== undefined) return otherwise;
  throw usage(`${file}: its name does not say the form: --format does`);
}

function namingOf({ from, userType, file }: TupleOptions, model: string | undefined): TupleNaming {
  if (model === undefined) {
    return { userType: userType === 'none' ? undefined : (userType ?? 'user') };
  }
  const peer = readPeerModel(model, from);
  const asked = userType === undefined || model === file ? undefined : userType;
  const imported = importPeerModel(peer, { userType: asked });
  const [problem] = imported.problems;
  if (problem !== undefined) throw shapeError(`${model}: ${problem.place}`, problem.text);
  return { names: imported.names, userType: imported.userType };
}

/**
 * Writes the lines of all tuples. `line` receives notes on skipped tuples; without it the first bad
 * one is an error.
 */
async function write(
  tuples: OpenedTuples['tuples'],
  naming: TupleNaming,
  sink: Writable,
  line: CliLine | undefined,
): Promise<{ written: number; skipped: number }> {
  const counts = { written: 0, skipped: 0 };
  // Error of the sink: a file that cannot be written, or a closed pipe.
  let failure: Error | undefined;
  sink.once('error', (error: Error) => (failure = error));
  let text = '';
  const flush = async (): Promise<void> => {
    if (failure !== undefined) throw failure;
    if (!sink.write(text)) await once(sink, 'drain');
    text = '';
  };
  for await (const { place, read } of tuples) {
    try {
      text += `${tupleLine(read(), naming)}\n`;
      counts.written += 1;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const problem = shapeError(place, error.message);
      if (line === undefined) throw problem;
      counts.skipped += 1;
      if (counts.skipped <= SKIPPED_SHOWN_MAX) say(line, `skipped: ${problem.message}`);
    }
    if (text.length >= FLUSH_CHARACTERS) await flush();
  }
  await flush();
  return counts;
}

function isOfFile(error: unknown): error is Error {
  return error instanceof Error && /^E[A-Z]+$/.test(String(Reflect.get(error, 'code')));
}
