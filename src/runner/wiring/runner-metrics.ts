import { registerBuildInfo, type BuildLabels } from '../../observability/build-info.ts';
import {
  MetricStore,
  type HotCounter,
  type HotHistogram,
} from '../../observability/metric-store.ts';
import { registerProcessMetrics } from '../../observability/process-metrics.ts';
import type { EventHubStats } from '../events/event-hub.ts';
import type { EventPublisher, RunnerEvent } from '../model/events.ts';
import type { Conclusion } from '../model/run.ts';

const CONCLUSIONS: readonly Conclusion[] = ['success', 'failure', 'cancelled', 'skipped'];
const SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 21_600];

/** What the runner counts, fed by its own events; label sets are closed, so that series are bounded. */
export class RunnerMetrics implements EventPublisher {
  readonly store = new MetricStore('runner');
  readonly #runs: ReadonlyMap<Conclusion, HotCounter>;
  readonly #jobs: ReadonlyMap<Conclusion, HotCounter>;
  readonly #runSeconds: HotHistogram;
  readonly #jobSeconds: HotHistogram;
  readonly #logLines: HotCounter;

  constructor(figures: {
    readonly counts: () => { readonly queued: number; readonly inProgress: number };
    /** Runs refused since too many waited, so far. */
    readonly refused: () => number;
    readonly hub: () => EventHubStats;
    readonly build: BuildLabels;
    /** Runs that may wait, and that may be in progress. */
    readonly queuedMax: number;
    readonly activeMax: number;
  }) {
    const { store } = this;
    registerBuildInfo(store, 'runner', figures.build);
    registerProcessMetrics(store);
    store
      .gauge({ name: 'runner_queue_limit_runs', help: 'Runs that may wait; more are refused.' })
      .set(figures.queuedMax);
    store
      .gauge({ name: 'runner_active_limit_runs', help: 'Runs that may be in progress at once.' })
      .set(figures.activeMax);
    this.#runs = byConclusion(store, 'runner_runs_total', 'Runs that ended, by conclusion.');
    this.#jobs = byConclusion(store, 'runner_jobs_total', 'Jobs that ended, by conclusion.');
    this.#runSeconds = store
      .histograms(
        { name: 'runner_run_duration_seconds', help: 'From start to end of a run.' },
        SECONDS,
      )
      .cell({});
    this.#jobSeconds = store
      .histograms(
        { name: 'runner_job_duration_seconds', help: 'From start to end of a job.' },
        SECONDS,
      )
      .cell({});
    this.#logLines = store
      .counters({ name: 'runner_log_lines_total', help: 'Lines that steps wrote.' })
      .cell({});
    const queued = store.gauge({ name: 'runner_queued_runs', help: 'Runs that wait.' });
    const running = store.gauge({ name: 'runner_active_runs', help: 'Runs in progress.' });
    const subscribers = store.gauge({
      name: 'runner_event_subscribers',
      help: 'Open event streams.',
    });
    const published = store.counter({
      name: 'runner_events_published_total',
      help: 'Frames of the event stream, each counted once.',
    });
    const dropped = store.counter({
      name: 'runner_events_dropped_total',
      help: 'Log lines that slow subscribers were told of as a gap only.',
    });
    const refused = store.counter({
      name: 'runner_queue_refusals_total',
      help: 'Runs that were refused, since as many as may wait did.',
    });
    const seen = { published: 0, dropped: 0, refused: 0 };
    store.onCollect(() => {
      const counts = figures.counts();
      queued.set(counts.queued);
      running.set(counts.inProgress);
      const hub = figures.hub();
      subscribers.set(hub.subscribers);
      published.inc(hub.published - seen.published);
      dropped.inc(hub.dropped - seen.dropped);
      const refusedCount = figures.refused();
      refused.inc(refusedCount - seen.refused);
      seen.refused = refusedCount;
      seen.published = hub.published;
      seen.dropped = hub.dropped;
    });
  }

  publish(event: RunnerEvent): void {
    if (event.type === 'run.completed') {
      this.#count(this.#runs, this.#runSeconds, event.run.conclusion, event.run.durationMs);
    } else if (event.type === 'job.completed') {
      this.#count(this.#jobs, this.#jobSeconds, event.job.conclusion, event.job.durationMs);
    } else if (event.type === 'step.log') {
      this.#logLines.add();
    }
  }

  publishLog(_runId: string, _jobId: string, _stepNumber: number, lines: readonly string[]): void {
    this.#logLines.add(lines.length);
  }

  #count(
    counters: ReadonlyMap<Conclusion, HotCounter>,
    seconds: HotHistogram,
    conclusion: Conclusion | undefined,
    durationMs: number | undefined,
  ): void {
    if (conclusion !== undefined) counters.get(conclusion)?.add();
    if (durationMs !== undefined) seconds.observe(durationMs / 1000);
  }
}

function byConclusion(
  store: MetricStore,
  name: string,
  help: string,
): ReadonlyMap<Conclusion, HotCounter> {
  const family = store.counters({ name, help });
  return new Map(CONCLUSIONS.map((conclusion) => [conclusion, family.cell({ conclusion })]));
}
