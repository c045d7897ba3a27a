import type { Scenario } from './harness/scenario.ts';
import { batchCheck100 } from './scenarios/batch-check.ts';
import { checkBesideFsck } from './scenarios/check-beside-fsck.ts';
import { checkBesideLists } from './scenarios/check-beside-lists.ts';
import { checkUniform, checkZipf } from './scenarios/check.ts';
import { coldStart } from './scenarios/cold-start.ts';
import { connectionChurn } from './scenarios/connection-churn.ts';
import { feedFlood } from './scenarios/feed-flood.ts';
import { largeWrites } from './scenarios/large-writes.ts';
import { listObjects } from './scenarios/list-objects.ts';
import { manyTenants, tenantChurn } from './scenarios/many-tenants.ts';
import { mixed } from './scenarios/mixed.ts';
import { neighbours } from './scenarios/neighbours.ts';
import { notifyFair } from './scenarios/notify-fair.ts';
import { notifyLive } from './scenarios/notify-live.ts';
import { overload } from './scenarios/overload.ts';
import {
  killOne,
  killOneLarge,
  killOneOfMany,
  rollingRestart,
} from './scenarios/rolling-restart.ts';
import { severalInstances } from './scenarios/several-instances.ts';
import { warmRestart } from './scenarios/warm-restart.ts';
import { watchLag } from './scenarios/watch-lag.ts';
import { writeOne } from './scenarios/write-one.ts';

/** Every scenario, by its name on the command line. Results stand in docs/benchmarks.md. */
export const SCENARIOS: readonly Scenario[] = [
  checkUniform,
  checkZipf,
  batchCheck100,
  largeWrites,
  listObjects,
  mixed,
  neighbours,
  overload,
  coldStart,
  manyTenants,
  tenantChurn,
  checkBesideLists,
  checkBesideFsck,
  writeOne,
  watchLag,
  feedFlood,
  notifyLive,
  notifyFair,
  rollingRestart,
  killOne,
  killOneOfMany,
  killOneLarge,
  warmRestart,
  severalInstances,
  connectionChurn,
];
