import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { writeOutput } from '../core/rows.ts';
import { counted } from '../core/tuple-json.ts';
import { PartFile } from './part-file.ts';
import { Retries, withHint } from './retries.ts';
import { placeOf, queryOf } from './tuple-filter.ts';
import { exportedParts, type Mark, TupleTally } from './tuple-parts.ts';

const RETRIES_DEFAULT = 5;
const CHANGED =
  'the tenant was written to while the export was cut: it is not of one revision from here on';

/** `export`. */
export async function exportTuples(line: CliLine): Promise<number> {
  const connection = placeOf(line, await connectionOf(line));
  const query = exportQueryOf(line, connection);
  const out = line.text('out') ?? '-';
  const retries = new Retries(line, RETRIES_DEFAULT);
  if (out !== '-') return await exportToFile(line, connection, query, new PartFile(out), out);
  if (line.isSet('resume')) throw usage('--resume: needs --out');
  const progress = new ExportProgress(line, new TupleTally());
  for await (const { bytes, mark } of exportedParts(connection, query, retries)) {
    await writeOutput(bytes);
    progress.pass(mark);
  }
  progress.finish('exported');
  return EXIT_OK;
}

async function exportToFile(
  line: CliLine,
  connection: ServiceConnection,
  query: URLSearchParams,
  file: PartFile,
  out: string,
): Promise<number> {
  const start = line.isSet('resume') ? await file.resume() : undefined;
  const progress = new ExportProgress(line, start?.tally ?? new TupleTally());
  const retries = new Retries(line, RETRIES_DEFAULT);
  try {
    if (start?.isComplete !== true) {
      for await (const part of exportedParts(connection, query, retries, start?.cursor)) {
        await file.write(part.bytes);
        progress.pass(part.mark);
      }
    }
    await file.finish();
  } catch (error) {
    if (!(error instanceof AppError) || !file.isOpen) throw error;
    const kept = counted(progress.count, 'tuple');
    throw withHint(error, `${file.path} has ${kept}: --resume goes on with it`);
  } finally {
    await file.close();
  }
  progress.finish(`${out}: exported`);
  return EXIT_OK;
}

function exportQueryOf(line: CliLine, connection: ServiceConnection): URLSearchParams {
  const query = queryOf(line, connection);
  if (line.isSet('written-at')) query.set('written_at', 'true');
  const token = line.text('at-least');
  if (token !== undefined) query.set('at_least_consistency_token', token);
  return query;
}

/** Shows the progress of an export. */
class ExportProgress {
  readonly #line: CliLine;
  readonly #tally: TupleTally;
  readonly #countBefore: number;
  readonly #startMs = performance.now();
  #token = '';

  constructor(line: CliLine, tally: TupleTally) {
    this.#line = line;
    this.#tally = tally;
    this.#countBefore = tally.count;
  }

  get count(): number {
    return this.#tally.count;
  }

  pass(mark: Mark): void {
    const { notes } = this.#line.screens;
    this.#tally.pass(mark);
    this.#token = mark.consistency_token ?? this.#token;
    if (mark.revision_changed === true) notes.line(CHANGED);
    notes.status(`${counted(this.count, 'tuple')}, ${this.#rate()}`);
  }

  finish(done: string): void {
    const { notes } = this.#line.screens;
    notes.status('');
    const isOfOne = this.#token !== '' && !this.#line.isSet('all-tenants');
    const token = isOfOne ? `; consistency token ${this.#token}` : '';
    notes.line(notes.foreign(`${done} ${counted(this.count, 'tuple')}, ${this.#rate()}${token}`));
  }

  #rate(): string {
    const seconds = Math.max((performance.now() - this.#startMs) / 1000, 0.001);
    return `${Math.round((this.count - this.#countBefore) / seconds)}/s`;
  }
}
