import { hideFromOtherProcesses } from '../shared/process-control.ts';
import { runCommandLine } from './face/cli/command-line.ts';
import { withdrawSecrets } from './secrets/own-secrets.ts';

// Before anything is read: steps that run in this process's care have the same user.
hideFromOtherProcesses();
const environment = withdrawSecrets(process.env);

// The runner itself is loaded when it is asked for: wrong arguments, help and calls of another runner are
// answered at once.
process.exitCode = await runCommandLine(process.argv.slice(2), environment, {
  openLink: async (context) => (await import('./parts/local-link.ts')).openLocalLink(context),
  openSecrets: async (context) => (await import('./parts/local-link.ts')).openLocalSecrets(context),
  planStart: async (context, request) =>
    (await import('./parts/start-plan.ts')).planStart(context, request),
  openStoredRuns: async (context) =>
    (await import('./parts/stored-runs.ts')).openStoredRuns(context),
  openActions: async (context) =>
    (await import('./parts/local-actions.ts')).openLocalActions(context),
});
