import type { HotCounter, MetricStore } from '../observability/metric-store.ts';
import { BatchTimes, createBatchTimesMemory } from '../protocol/batch-times.ts';
import {
  BATCH_STAGES,
  CALL_STAGES,
  CARRIERS,
  type StageSum,
  StageTimes,
} from '../shared/stage-times.ts';

/** Where stages are measured: on the gateway's thread, and in memory shared with each worker. */
export type MeasuredStages = {
  readonly times: StageTimes;
  /** By slot. */
  readonly memories: readonly SharedArrayBuffer[];
};

const HOP_STAGES = ['hop_out', 'evaluation', 'hop_back'] as const;

/** Begins to measure stages, and adds their series to `store`. Only where that was asked for. */
export function measureStages(store: MetricStore, workerCount: number): MeasuredStages {
  const seconds = store.counters({
    name: 'gatehouse_stage_seconds_total',
    help: 'Time of decision calls by stage; stages of batches are those of every carrier.',
  });
  const goes = store.counters({
    name: 'gatehouse_stage_calls_total',
    help: 'What gatehouse_stage_seconds_total was added up over: calls, for waiting and hops batches.',
  });
  const times = new StageTimes();
  const memories = Array.from({ length: workerCount }, createBatchTimesMemory);
  const bySlot = memories.map((memory) => new BatchTimes(memory));
  const shown: (() => void)[] = [];
  const show = (
    carrier: string,
    stage: string,
    sum: () => Pick<StageSum, 'ms' | 'count'>,
  ): void => {
    const labels = { carrier, stage };
    const cells = { seconds: seconds.cell(labels), goes: goes.cell(labels) };
    shown.push(() => {
      const { ms, count } = sum();
      raise(cells.seconds, ms / 1_000);
      raise(cells.goes, count);
    });
  };
  for (const carrier of CARRIERS) {
    const { sums } = times.calls[carrier];
    for (const stage of CALL_STAGES) show(carrier, stage, () => sums[stage]);
  }
  for (const stage of BATCH_STAGES) show('any', stage, () => times.batches.sums[stage]);
  for (const stage of HOP_STAGES) show('any', stage, () => sumOf(bySlot, stage));
  store.onCollect(() => {
    for (const update of shown) update();
  });
  return { times, memories };
}

function raise(counter: HotCounter, value: number): void {
  // The clocks of two threads may differ by less than a hop takes, in either direction: a counter never falls.
  counter.add(Math.max(0, value - counter.value));
}

function sumOf(
  bySlot: readonly BatchTimes[],
  stage: (typeof HOP_STAGES)[number],
): Pick<StageSum, 'ms' | 'count'> {
  const sum = { ms: 0, count: 0 };
  for (const { sums } of bySlot) {
    sum.ms += sums[stage].ms;
    sum.count += sums[stage].count;
  }
  return sum;
}
