import { usage } from '../../command-line/parse-words.ts';
import { parseGate } from '../../language/gate/parse-gate.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_USAGE } from '../core/exit-codes.ts';
import { readText } from '../core/files.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showActivation, waitMsOf, type WrittenJson } from './activation.ts';
import { fileOf, isJson, say } from './files/model-files.ts';
import { modelCall, type ProblemJson, versionOf } from './model-calls.ts';

type WarnedJson = WrittenJson & { readonly warnings: readonly ProblemJson[] };

type PlaceJson = Pick<ProblemJson, 'path' | 'line' | 'column'>;

const SAMPLED = { default: 10_000, max: 100_000 } as const;
const VERSION_MAX = 999_999_999_999_999;

/** `model apply`. */
export async function applyModel(line: CliLine): Promise<number> {
  const path = fileOf(line);
  const waitMs = waitMsOf(line);
  const tests = line.texts('tests').map((name) => ({ name, text: readText(name) }));
  const text = readText(path);
  const form = isJson(path, text) ? 'json' : 'gate';
  const fields = writeFields(line);
  const sampled = sampledOf(line);
  const connection = await connectionOf(line);
  const body = {
    ...fields,
    ...(sampled === undefined ? {} : { guard: guardOf(line, sampled, connection.tenant) }),
    model: { [form]: text },
    ...(line.isSet('dry-run') ? { dry_run: true } : {}),
    ...(tests.length === 0 ? {} : { tests }),
  };
  const place = (problem: PlaceJson): string => placeOf(path, form, text, problem);
  let written: WarnedJson;
  try {
    written = await modelCall<WarnedJson>(connection, 'WriteModel', body);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { path: at, line: row, column } = error.metadata;
    if (at === undefined && row === undefined) throw error;
    const found = { path: at ?? '$', line: Number(row ?? 0), column: Number(column ?? 0) };
    say(line, `${place(found)}: error: ${error.message}`);
    return EXIT_USAGE;
  }
  sayWarnings(line, written.warnings, place);
  return await showActivation(line, connection, written, waitMs);
}

/** `model roll-back`. */
export async function rollBackModel(line: CliLine): Promise<number> {
  const isPrevious = line.words.length === 1 && line.words[0] === 'previous';
  const version = isPrevious ? '0' : versionOf(line);
  if (version === undefined) throw usage('which version? (model history lists them)');
  const waitMs = waitMsOf(line);
  const body = { ...writeFields(line), version };
  const connection = await connectionOf(line);
  const written = await modelCall<WarnedJson>(connection, 'RollBackModel', body);
  sayWarnings(line, written.warnings, ({ path }) => path);
  return await showActivation(line, connection, written, waitMs);
}

function writeFields(line: CliLine): object {
  const given = line.text('expected-version');
  const expected = integerOfOption('expected-version', given, 1, VERSION_MAX);
  const comment = line.text('comment');
  return {
    ...(expected === undefined ? {} : { expected_version: String(expected) }),
    ...(comment === undefined ? {} : { comment }),
    ...(line.isSet('force') ? { force: true } : {}),
  };
}

/** Number of queries that guard the write; undefined without a guard. Errors: INVALID_REQUEST. */
function sampledOf(line: CliLine): number | undefined {
  const sampled = integerOfOption('sampled', line.text('sampled'), 1, SAMPLED.max);
  if (line.isSet('refuse-new-allows') || line.isSet('refuse-new-denies')) {
    return sampled ?? SAMPLED.default;
  }
  const alone = ['sampled', 'tenant'].find((option) => line.isSet(option));
  if (alone === undefined) return undefined;
  throw usage(`--${alone} goes with --refuse-new-allows or --refuse-new-denies`);
}

function guardOf(line: CliLine, sampled: number, tenant: string): object {
  return {
    questions: { sampled, ...(tenant === '' ? {} : { tenant_id: tenant }) },
    refuse_new_allows: line.isSet('refuse-new-allows'),
    refuse_new_denies: line.isSet('refuse-new-denies'),
  };
}

function sayWarnings(
  line: CliLine,
  warnings: readonly ProblemJson[],
  place: (problem: ProblemJson) => string,
): void {
  for (const one of warnings) say(line, `${place(one)}: warning: ${one.message}`);
}

/** `model.gate:4:30`, or the JSON path if there are no lines. */
function placeOf(
  file: string,
  form: 'json' | 'gate',
  text: string,
  { path, line, column }: PlaceJson,
): string {
  if (line > 0) return `${file}:${line}:${column}`;
  if (form === 'json') return `${file}:${path}`;
  const found = parseGate(text).locate(path);
  return `${file}:${found.line}:${found.column}`;
}
