import type { ProblemReporter } from '../../../src/runner/model/ports.ts';
import { MasterKey } from '../../../src/runner/secrets/key-source.ts';
import { createTextSealer } from '../../../src/runner/secrets/text-sealer.ts';
import { createSyncService, type SyncService } from '../../../src/runner/sync/sync-service.ts';
import { silentReport } from '../../../src/shared/loop-report.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';

/** The synchronisation of a state folder with a code host that nobody answers for. */
export function createLonelySync(stateDir: string, report: ProblemReporter): Promise<SyncService> {
  return createSyncService({
    stateDir,
    projectDir: stateDir,
    settings: {
      hostApiUrl: 'http://127.0.0.1:9/api',
      hostGitUrl: 'http://127.0.0.1:9',
      hostToken: undefined,
      webhookSecret: 'secret',
    },
    sealer: createTextSealer(new MasterKey('a passphrase', stateDir)),
    clock: systemClock,
    report,
    polls: silentReport,
  });
}
