import { batchCheck, check } from './scenarios/check.ts';
import { manyTenants } from './scenarios/many-tenants.ts';
import { mixed } from './scenarios/mixed.ts';
import { notifyLive } from './scenarios/notify-live.ts';
import { overload } from './scenarios/overload.ts';
import { rollingRestart } from './scenarios/rolling-restart.ts';
import type { Scenario } from './scenarios/scenario.ts';

/** Every scenario, by its name on the command line. Results stand in docs/benchmarks.md. */
export const SCENARIOS: readonly Scenario[] = [
  check,
  batchCheck,
  mixed,
  manyTenants,
  overload,
  rollingRestart,
  notifyLive,
];
