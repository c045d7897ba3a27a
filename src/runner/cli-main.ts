import { runCommandLine } from './face/cli/command-line.ts';

// The runner itself is loaded when it is asked for: wrong arguments, help and calls of another runner are
// answered at once.
process.exitCode = await runCommandLine(process.argv.slice(2), {
  openLink: async (context) => (await import('./parts/local-link.ts')).openLocalLink(context),
  openSecrets: async (context) => (await import('./parts/local-link.ts')).openLocalSecrets(context),
  openStoredRuns: async (context) =>
    (await import('./parts/stored-runs.ts')).openStoredRuns(context),
});
