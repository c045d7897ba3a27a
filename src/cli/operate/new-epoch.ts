import { loadConfig } from '../../config/load-config.ts';
import type { Config } from '../../config/options.ts';
import { AppError } from '../../shared/app-error.ts';
import { startEmbeddedPostgres } from '../../store/embedded/embedded-postgres.ts';
import { startNewEpoch } from '../../store/migrations/deployment.ts';
import { migrate } from '../../store/migrations/migrate.ts';
import { examineTarget } from '../../store/postgres/pooler.ts';
import { withSoleUse } from '../../store/postgres/sole-use.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { assertNoWords } from './words.ts';

/**
 * `new-epoch`: invalidates every consistency token and loaded index, after a cold copy of the data
 * directory was made or restored. Resolves to 1 if an instance runs or the database cannot be used.
 * Errors: INVALID_REQUEST, CONFIG_INVALID.
 */
export async function beginEpoch(line: CliLine): Promise<number> {
  assertNoWords(line);
  const config = loadConfig(line.environment);
  try {
    line.screens.output.line(`Epoch ${await newEpoch(config)} begins.`);
    return EXIT_OK;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // The message names the process; the remedy is the same for all of them.
    const { notes } = line.screens;
    for (const text of `No new epoch was begun: ${error.message}`.split('\n')) {
      notes.line(notes.foreign(text));
    }
    notes.line(
      'Where a service runs on this database, stop it, run this command, and start it again.',
    );
    return EXIT_NO;
  }
}

async function newEpoch(config: Config): Promise<string> {
  const server =
    config.databaseUrl === undefined
      ? await startEmbeddedPostgres({ dataDirectory: config.dataDir })
      : undefined;
  try {
    const target =
      server?.target ?? (await examineTarget({ connectionString: config.databaseUrl ?? '' }));
    await migrate(target);
    // Refuses while an instance runs, because it would keep the old epoch.
    return String(await withSoleUse(target, server !== undefined, startNewEpoch));
  } finally {
    await server?.stop();
  }
}
