import { hideFromOtherProcesses } from '../shared/process/process-control.ts';
import { runCommandLine } from './cli/command-line.ts';
import { secretVariables, withdrawSecrets } from './secrets/own-secrets.ts';

// Steps have the same user. What only looks at files of the project has nothing to hide, and is spared the
// time that it takes.
if (secretVariables(process.env).length > 0) hideFromOtherProcesses();
const environment = withdrawSecrets(process.env);

// The runner itself is loaded when it is asked for: wrong arguments, help and calls of another runner are
// answered at once.
process.exitCode = await runCommandLine(process.argv.slice(2), environment, {
  conceal: hideFromOtherProcesses,
  serve: async (settings) => (await import('./serve.ts')).serveRunner(settings),
  openLink: async (context) => {
    const early = (await import('./wiring/early-supervision.ts')).startSupervision();
    return (await import('./wiring/local-link.ts')).openLocalLink(context, early);
  },
  openSecrets: async (context) =>
    (await import('./wiring/local-link.ts')).openLocalSecrets(context),
  planStart: async (context, request) =>
    (await import('./wiring/start-plan.ts')).planStart(context, request),
  forecast: async (context, workflow) =>
    (await import('./wiring/forecast.ts')).forecastOf(context, workflow),
  openStoredRuns: async (context) =>
    (await import('./wiring/stored-runs.ts')).openStoredRuns(context),
  openActions: async (context) =>
    (await import('./wiring/local-actions.ts')).openLocalActions(context),
});
