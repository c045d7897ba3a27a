import { createReadStream, type Stats, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import { serviceReason } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { fileError, messageOf } from '../core/files.ts';
import { showAnswer } from '../core/rows.ts';
import { counted } from '../core/tuple-json.ts';
import { Retries, withHint } from './retries.ts';
import { upload } from './upload.ts';

const RETRIES_DEFAULT = 5;
const MEGABYTE = 1_000_000;

/** A `gatehouse.v1.ImportTuplesResponse` in JSON. */
type ImportAnswer = {
  readonly received?: string;
  readonly written?: string;
  readonly unchanged?: string;
  readonly consistency_token?: string;
  readonly resumed_at?: string;
  readonly seats_left_out?: string;
  readonly warnings?: readonly string[];
};

/** `import`. */
export async function importTuples(line: CliLine): Promise<number> {
  const connection = await connectionOf(line);
  const [path, ...more] = line.words;
  if (path === undefined || more.length > 0) throw usage('which file? Name one; - is the input');
  const retries = new Retries(line, RETRIES_DEFAULT);
  const answer = await imported(line, connection, path, retries);
  const { notes } = line.screens;
  for (const warning of answer.warnings ?? []) notes.line(notes.foreign(`warning: ${warning}`));
  showAnswer(line, answer, () => [wordsOf(line, answer)]);
  return EXIT_OK;
}

async function imported(
  line: CliLine,
  connection: ServiceConnection,
  path: string,
  retries: Retries,
): Promise<ImportAnswer> {
  const stats = path === '-' ? undefined : statsOf(path);
  const id = line.text('import-id');
  const isRepeatable = id !== undefined && stats?.isFile() === true;
  for (;;) {
    const progress = new SentBytes(line, stats?.size);
    const body = path === '-' ? process.stdin : createReadStream(path);
    try {
      return await upload(connection, {
        path: `/v1/tuples:import?${importQueryOf(line, connection).toString()}`,
        body: progress.watch(body),
        onConnected: () => retries.begun(),
        bodyError: (error) => fileError(path, messageOf(error)),
      });
    } catch (error) {
      progress.finish();
      const isElsewhere = serviceReason(error) === 'IMPORT_TAKEN_OVER';
      if (isRepeatable && !isElsewhere) await retries.wait(error, 'the import is sent again');
      else throw isElsewhere ? error : hinted(line, error);
    } finally {
      progress.finish();
    }
  }
}

/**
 * Adds a hint to a lost connection: tuples that were written stay, and count as unchanged when sent
 * again.
 */
function hinted(line: CliLine, error: unknown): unknown {
  const isLost = error instanceof AppError && error.reason === 'UNAVAILABLE';
  if (!isLost || line.isSet('dry-run')) return error;
  return withHint(
    error,
    'some may be written: send it again; with --import-id it goes on where it ended',
  );
}

function importQueryOf(line: CliLine, { project, tenant }: ServiceConnection): URLSearchParams {
  const id = line.text('import-id');
  return new URLSearchParams({
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    ...(id === undefined ? {} : { import_id: id }),
    ...(line.isSet('dry-run') ? { dry_run: 'true' } : {}),
  });
}

function statsOf(path: string): Stats {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    throw fileError(path, messageOf(error));
  }
  if (stats.isDirectory()) throw fileError(path, 'is a folder');
  return stats;
}

function wordsOf(line: CliLine, answer: ImportAnswer): string {
  const { received = '0', written = '0', unchanged = '0', consistency_token: token = '' } = answer;
  const { seats_left_out: seats = '0', resumed_at: resumed = '0' } = answer;
  const parts = [
    `${counted(received, 'tuple')} received`,
    ...(line.isSet('dry-run')
      ? ['nothing written: a dry run']
      : [`${written} written`, `${unchanged} unchanged`]),
    ...(seats === '0' ? [] : [`${counted(seats, 'seat')} left out`]),
    ...(resumed === '0' ? [] : [`${resumed} stored by an earlier attempt`]),
  ];
  return `${parts.join(', ')}${token === '' ? '' : `; consistency token ${token}`}`;
}

/** Shows how much of an import is sent. */
class SentBytes {
  readonly #line: CliLine;
  readonly #total: number | undefined;
  #sent = 0;

  constructor(line: CliLine, total: number | undefined) {
    this.#line = line;
    this.#total = total === 0 ? undefined : total;
  }

  watch(body: Readable): Readable {
    const { notes } = this.#line.screens;
    if (!notes.isLive) return body;
    return body.on('data', (chunk: Buffer) => {
      this.#sent += chunk.length;
      const share =
        this.#total === undefined ? '' : `, ${Math.round((this.#sent / this.#total) * 100)} %`;
      notes.status(`sent ${(this.#sent / MEGABYTE).toFixed(1)} MB${share}`);
    });
  }

  finish(): void {
    this.#line.screens.notes.status('');
  }
}
