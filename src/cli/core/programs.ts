import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Those of folders beside src/, which a package does not have. */
const OF_CHECKOUT = {
  load: 'drives load at a service',
  verify: 'disturbs instances, and checks whether every answer was fresh',
};
const isCheckout = existsSync(fileURLToPath(new URL('../../../load', import.meta.url)));

/** Programs that read their own arguments: `gatehouse NAME …` is theirs to the end of the line. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  serve: 'starts the authorization service; --instances N, --testing',
  runner: 'runs workflows; what gatehouse-runner is',
  ...(isCheckout ? OF_CHECKOUT : {}),
};
