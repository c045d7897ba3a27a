import { randomBytes } from 'node:crypto';
import { onInterrupt } from '../../bench/harness/cleanup.ts';
import { runGenerators } from './generators.ts';
import type { LoadPlan } from './load-plan.ts';
import type { Replay, Target } from './messages.ts';
import { TargetError, assertTarget, prepareTarget } from './prepare-target.ts';
import { Progress } from './progress.ts';
import { RunCounts, stageSpans } from './run-counts.ts';
import type { RunResult } from './run-result.ts';
import { ServerMetrics } from './server-metrics.ts';

export type DriveOptions = {
  readonly title: string;
  readonly target: Target;
  readonly adminSecret: string | undefined;
  /** Where each process of the service tells its metrics; none: the report is without them. */
  readonly metricsUrls: readonly string[];
  /** Exactly one of these two. */
  readonly plan: LoadPlan | undefined;
  readonly replay: Replay | undefined;
  readonly generators: number;
  /** Of each generator, at most. */
  readonly connections: number;
  /** Whether whoever started it agreed to a target that is not this machine. */
  readonly isAgreed: boolean;
  /** Whether an earlier run has inserted the data set of the plan. */
  readonly isFilled?: boolean;
};

/**
 * Asks a service what a plan or recorded questions say, and ends with the run's figures; on SIGINT before its time, with
 * what there is. Errors: TargetError, PlanError; throws when a generator ends.
 */
export async function drive(options: DriveOptions): Promise<RunResult> {
  const { title, target, plan, replay, generators: of, connections } = options;
  assertTarget(target, options.isAgreed);
  const progress = new Progress();
  if (plan?.data !== undefined && options.isFilled !== true) {
    progress.say(`filling ${plan.project} …`);
    await prepareTarget(target, options.adminSecret, plan);
  }
  const { metricsUrls } = options;
  const metrics = metricsUrls.length > 0 ? new ServerMetrics(metricsUrls, target.token) : undefined;
  await metrics?.scrape().catch((error: Error) => {
    throw new TargetError(`--metrics-url: ${error.message}`);
  });
  const counts = new RunCounts(plan);
  const total = stageSpans(plan).at(-1)?.to;
  let told = 0;
  const interrupted = new AbortController();
  const release = onInterrupt(() => {
    const isFirst = !interrupted.signal.aborted;
    interrupted.abort();
    return isFirst;
  });
  const startedAt = new Date().toISOString();
  try {
    await runGenerators({
      target,
      plan,
      replay,
      of,
      connections,
      runId: randomBytes(4).toString('hex'),
      signal: interrupted.signal,
      onStart: () => metrics?.start(),
      onWindow: (window) => {
        counts.add(window);
        // All generators have told of a second once one tells of the next but one.
        for (; told + 1 < counts.secondsSoFar; told++) {
          const second = counts.second(told);
          if (second !== undefined) progress.second(counts.stageName(told), total, second);
        }
      },
    });
  } finally {
    metrics?.stop();
    release();
    progress.end();
  }
  if (metrics !== undefined && metrics.failures > 0) {
    progress.say(`${metrics.failures} scrapes of the metrics failed`);
  }
  return {
    format: 'gatehouse-load/1',
    title,
    startedAt,
    target: new URL(target.url).origin,
    plan,
    replay: replay && { speed: replay.speed, repeat: replay.repeat },
    generators: of,
    ...counts.result(),
    server: metrics?.samples ?? [],
    metricsOf: metricsUrls.length,
    isWhole: !interrupted.signal.aborted,
  };
}
