import { hideFromOtherProcesses } from '../shared/process-control.ts';
import { runCommandLine } from './face/cli/command-line.ts';
import { secretVariables, withdrawSecrets } from './secrets/own-secrets.ts';

// Steps have the same user. What only looks at files of the project has nothing to hide, and is spared the
// time that it takes.
if (secretVariables(process.env).length > 0) hideFromOtherProcesses();
const environment = withdrawSecrets(process.env);

// The runner itself is loaded when it is asked for: wrong arguments, help and calls of another runner are
// answered at once.
process.exitCode = await runCommandLine(process.argv.slice(2), environment, {
  conceal: hideFromOtherProcesses,
  openLink: async (context) => {
    const early = (await import('./parts/early-supervision.ts')).startSupervision();
    return (await import('./parts/local-link.ts')).openLocalLink(context, early);
  },
  openSecrets: async (context) => (await import('./parts/local-link.ts')).openLocalSecrets(context),
  planStart: async (context, request) =>
    (await import('./parts/start-plan.ts')).planStart(context, request),
  forecast: async (context, workflow) =>
    (await import('./parts/forecast.ts')).forecastOf(context, workflow),
  openStoredRuns: async (context) =>
    (await import('./parts/stored-runs.ts')).openStoredRuns(context),
  openActions: async (context) =>
    (await import('./parts/local-actions.ts')).openLocalActions(context),
});
