import { AppError } from '../../../shared/app-error.ts';
import { type LoopReport, reportedRun } from '../../../shared/loop-report.ts';
import type { Clock } from '../../../shared/time/clock.ts';
import { nextScheduledTime } from '../../language/cron.ts';
import type { ProblemReporter, RunService, WorkflowCatalog } from '../../model/ports.ts';

const MINUTE_MS = 60_000;
const EVENT = 'schedule';

/**
 * Starts workflows at the times of `on: schedule`. It looks once a minute; what was due while the
 * process did not run is left out, as on GitHub. A schedule that is due twice in one look runs once.
 */
export class Schedule {
  readonly #catalog: WorkflowCatalog;
  readonly #runs: RunService;
  readonly #clock: Clock;
  readonly #report: ProblemReporter;
  readonly #loop: LoopReport;
  #lookedAtMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(
    catalog: WorkflowCatalog,
    runs: RunService,
    clock: Clock,
    report: ProblemReporter,
    loop: LoopReport,
  ) {
    this.#catalog = catalog;
    this.#runs = runs;
    this.#clock = clock;
    this.#report = report;
    this.#loop = loop;
    this.#lookedAtMs = clock.nowMs();
  }

  /** Begins to look, at the beginning of each minute. */
  start(): void {
    if (this.#isStopped) return;
    const untilNextMs = MINUTE_MS - (this.#clock.nowMs() % MINUTE_MS);
    this.#timer = setTimeout(() => void this.look().then(() => this.start()), untilNextMs);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /**
   * Starts what was due since the last look. A workflow that fails costs itself alone: the others start,
   * then the look counts as failed. Never rejects.
   */
  async look(): Promise<void> {
    const after = new Date(this.#lookedAtMs);
    const nowMs = this.#clock.nowMs();
    this.#lookedAtMs = nowMs;
    await reportedRun(this.#loop, async () => {
      const failures: unknown[] = [];
      for (const { fileName, workflow } of await this.#catalog.list()) {
        for (const trigger of workflow?.triggers ?? []) {
          if (trigger.event !== EVENT) continue;
          for (const schedule of trigger.crons ?? []) {
            try {
              const next = nextScheduledTime(schedule, after);
              if (next !== undefined && next.getTime() <= nowMs && !this.#isStopped) {
                await this.#startOne(fileName, schedule.cron);
              }
            } catch (error) {
              failures.push(error);
            }
          }
        }
      }
      if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
      if (failures.length === 1) throw failures[0];
    });
  }

  async #startOne(workflow: string, cron: string): Promise<void> {
    try {
      await this.#runs.start({
        workflow,
        event: EVENT,
        payload: { schedule: cron },
        isSelected: true,
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#report('schedule.not_started', error);
    }
  }
}
