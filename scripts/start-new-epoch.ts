/**
 * Ends the validity of every consistency token and loaded index, after the data directory was
 * copied or put back cold, which nothing in the database shows. Run it while no instance runs, with
 * the settings of the service: npm run new-epoch
 */
import { loadConfigOrExit } from '../src/config/load-config-or-exit.ts';
import type { Config } from '../src/config/options.ts';
import { AppError } from '../src/shared/app-error.ts';
import { startNewEpoch } from '../src/store/deployment.ts';
import { startEmbeddedPostgres } from '../src/store/embedded-postgres.ts';
import { migrate } from '../src/store/migrate.ts';
import { examineTarget } from '../src/store/pooler.ts';
import { withSoleUse } from '../src/store/sole-use.ts';

try {
  await run(loadConfigOrExit());
} catch (error) {
  if (!(error instanceof AppError)) throw error;
  // Whose message names the process; what to do about it is the same whoever it is.
  process.stderr.write(
    `No new epoch was begun: ${error.message}\nWhere a service runs on this database, stop it, run this command, and start it again.\n`,
  );
  process.exitCode = 1;
}

async function run(config: Config): Promise<void> {
  const server =
    config.databaseUrl === undefined
      ? await startEmbeddedPostgres({ dataDirectory: config.dataDir })
      : undefined;
  try {
    const target =
      server?.target ?? (await examineTarget({ connectionString: config.databaseUrl ?? '' }));
    await migrate(target);
    // Refuses while an instance runs, which would go on with the old epoch.
    const epoch = await withSoleUse(target, server !== undefined, startNewEpoch);
    process.stdout.write(`Epoch ${epoch} begins.\n`);
  } finally {
    await server?.stop();
  }
}
