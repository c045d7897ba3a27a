import { hideFromOtherProcesses } from '../shared/process/process-control.ts';
import { withdrawSecrets } from './secrets/own-secrets.ts';
import { serveRunner } from './serve.ts';

// Before anything is read: steps have the same user.
hideFromOtherProcesses();
const environment = withdrawSecrets(process.env);
const [workspace] = process.argv.slice(2);
await serveRunner(
  workspace === undefined ? environment : { ...environment, RUNNER_WORKSPACE: workspace },
);
