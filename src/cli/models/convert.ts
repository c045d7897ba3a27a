import { usage } from '../../command-line/parse-words.ts';
import { parseGate } from '../../language/gate/parse-gate.ts';
import { printGate } from '../../language/gate/print-gate-tree.ts';
import { findDuplicateKey } from '../../model/namespace/duplicate-key.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { readText, writeText } from '../core/files.ts';
import { convertTuples } from './convert-tuples.ts';
import { fileOf, isJson, isOfContent, say } from './files/model-files.ts';

/** Deeper than any model. */
const DEPTH_MAX = 100;

/** `model convert`: writes a model in its other form, or tuples of another system. */
export async function convertFile(line: CliLine): Promise<number> {
  const path = fileOf(line);
  const to = line.text('to');
  const from = line.text('from');
  if (![undefined, 'openfga', 'spicedb'].includes(from)) {
    throw usage('--from is openfga or spicedb');
  }
  const isTuples = to === undefined ? hasTuples(path) : to === 'tuples';
  if (!isTuples) return convertModel(line, path, to);
  return await convertTuples(line, {
    file: path,
    out: line.text('out') ?? '-',
    format: line.text('format'),
    from,
    model: line.text('model'),
    userType: line.text('user-type'),
    skips: line.isSet('skip'),
  });
}

function convertModel(line: CliLine, path: string, form: string | undefined): number {
  const text = readText(path);
  const isFromJson = isJson(path, text);
  const to = form ?? (isFromJson ? 'gate' : 'json');
  if (to !== 'gate' && to !== 'json') throw usage('--to is gate, json or tuples');
  try {
    const document: unknown = isFromJson ? parseJson(text) : parseGate(text).document;
    const duplicate = isFromJson ? findDuplicateKey(text, DEPTH_MAX) : undefined;
    if (duplicate !== undefined) {
      const { path: place, key } = duplicate;
      say(line, `${path}: ${place}: duplicate key "${key}", of which one would be lost`);
      return EXIT_NO;
    }
    const gate = printGate(document);
    const written = to === 'gate' ? gate : `${JSON.stringify(document, null, 2)}\n`;
    writeText(line.text('out') ?? '-', written);
    return EXIT_OK;
  } catch (error) {
    if (!isOfContent(error) && !(error instanceof SyntaxError)) throw error;
    say(line, `${path}: ${error.message}`);
    return EXIT_NO;
  }
}

/** True if the name of a file belongs to tuples, and never to a model. */
function hasTuples(path: string): boolean {
  return /\.(?:csv|jsonl|ndjson|ya?ml|zaml|txt)$/i.test(path);
}

function parseJson(text: string): unknown {
  return JSON.parse(text);
}
