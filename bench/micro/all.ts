// Lists the micro-benchmarks; yields nothing by itself.
import type { MicroBench } from '../harness/micro-bench.ts';
import { callerFound, tokenCompared } from './callers.ts';
import { hintsDropped, hintsMake, hintsOwn } from './change-hints.ts';
import {
  checkBuiltIn,
  checkBuiltInNetworks,
  checkDeclared,
  checkDeclaredNetworks,
  checkPlain,
} from './conditional-checks.ts';
import { conditionInstant, conditionIp } from './conditions.ts';
import { engineCheck } from './engine-check.ts';
import { exactObject, exactObjectGeneral, exactSet, exactSetGeneral } from './exact-sets.ts';
import { logWrite } from './log-write.ts';
import { metricsDecision, metricsObserve, metricsScrape } from './metrics.ts';
import { modelCompile } from './model.ts';
import { generalCheck, overlayCheck1, overlayCheck100 } from './overlay-check.ts';
import { changesPack, changesUnpack } from './packed-changes.ts';
import { scanBatchJson, scanCheckJson } from './raw-scan.ts';
import { runnerLines, runnerMask } from './runner-output.ts';
import { shardRouting } from './shard-routing.ts';
import { tokenDecode, tokenEncode } from './token.ts';

/** Every micro-benchmark, by its name on the command line. */
export const MICRO_BENCHES: readonly MicroBench[] = [
  tokenEncode,
  tokenDecode,
  callerFound,
  tokenCompared,
  scanCheckJson,
  scanBatchJson,
  changesPack,
  changesUnpack,
  shardRouting,
  hintsOwn,
  hintsDropped,
  hintsMake,
  conditionIp,
  conditionInstant,
  checkPlain,
  checkBuiltIn,
  checkBuiltInNetworks,
  checkDeclared,
  checkDeclaredNetworks,
  modelCompile,
  metricsObserve,
  metricsDecision,
  metricsScrape,
  runnerMask,
  runnerLines,
  engineCheck,
  generalCheck,
  overlayCheck1,
  overlayCheck100,
  exactSet,
  exactSetGeneral,
  exactObject,
  exactObjectGeneral,
  logWrite,
];
