import type { PackedHistogram } from './latency-histogram.ts';
import type { LoadPlan } from './load-plan.ts';

/** Latencies in milliseconds, of what was answered with 200. */
export type Percentiles = {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
};

/** One second of a run, of all generators. */
export type RunSecond = {
  readonly second: number;
  readonly offered: number;
  readonly notSent: number;
  readonly answered: number;
  readonly wrong: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly latencies: Percentiles;
};

/** An operation in a stage, or in all of them. */
export type OperationTotal = {
  readonly stage: string;
  readonly operation: string;
  readonly answered: number;
  readonly wrong: number;
  readonly refused: number;
  readonly perSecond: number;
  readonly latencies: Percentiles;
};

/** A stage by its seconds from the start. */
export type StageSpan = { readonly name: string; readonly from: number; readonly to: number };

/** What the service says of itself about once a second; absent what it does not say. */
export type ServerSample = {
  readonly second: number;
  readonly cpuCores?: number;
  readonly residentMib?: number;
  readonly workerQueue?: number;
  readonly writeQueue?: number;
  readonly loopDelayP99Ms?: number;
  readonly poolWaiting?: number;
};

/** All of one run, as it is written beside a report and read again for a comparison. No credentials are in it. */
export type RunResult = {
  readonly format: 'gatehouse-load/1';
  readonly title: string;
  readonly startedAt: string;
  readonly target: string;
  /** Absent of recorded questions. */
  readonly plan?: LoadPlan | undefined;
  readonly replay?: { readonly speed: number; readonly repeat: number } | undefined;
  readonly generators: number;
  readonly seconds: readonly RunSecond[];
  readonly stages: readonly StageSpan[];
  readonly operations: readonly OperationTotal[];
  readonly latencies: PackedHistogram;
  readonly server: readonly ServerSample[];
  /** Processes whose figures `server` sums; absent: one. */
  readonly metricsOf?: number | undefined;
  readonly generatorCpuCores: number;
  readonly sentLateP99Ms: number;
  readonly failures: readonly string[];
  readonly isWhole: boolean;
};
