import type { AnswerBatch, WorkerReport, WorkerStats } from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type { CallOrigin } from '../../protocol/shard-client.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { BatchStages } from '../../shared/time/stage-times.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';
import type { SlotRequests } from '../queues/slot-requests.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { deliverParsed, deliverRaw } from './answer-delivery.ts';
import { ControlQueue } from './control-queue.ts';
import { batchOfRequests } from './request-batcher.ts';
import type { WorkerLife } from './worker-life.ts';

/** Batches that a worker holds at once: one under work, one waiting, so that it never idles. */
const BATCHES_IN_FLIGHT_MAX = 2;
/** A batch takes some slices; a worker that is silent this long with one at hand is stuck. */
const SILENT_MS_MAX = 30_000;

/** Callbacks for what comes with the answers of a worker. */
export type AnswerReports = {
  readonly onStats: (slot: number, stats: WorkerStats) => void;
  readonly onReport: (slot: number, report: WorkerReport) => void;
  /** `origin` is that of the request, where it is known and waits for its answer. */
  readonly onBudgetRefused: (refusal: BudgetRefusal, origin: CallOrigin | undefined) => void;
  readonly modelJson: (projectId: string, modelVersion: number) => string | undefined;
};

/** Sends a worker what waits for it, in batches of which it holds a few at once, and delivers what it answers. */
export class BatchDispatcher {
  /** Messages of the next batch besides requests; `schedule` makes sure that there is one. */
  readonly control = new ControlQueue();
  readonly acks = new Acknowledgements();
  readonly #slot: number;
  readonly #requests: SlotRequests;
  readonly #life: WorkerLife;
  readonly #reports: AnswerReports;
  readonly #clock: Clock;
  readonly #stages: BatchStages | undefined;
  #cancelled: number[] = [];
  #batchesInFlight = 0;
  #flushScheduled = false;
  /** Since when the next batch is waited for, 0 while it is not; only where stages are measured. */
  #scheduledMs = 0;
  /** When the worker last answered, or got a batch while it had none. */
  #heardAtMs = 0;

  constructor(
    slot: number,
    requests: SlotRequests,
    life: WorkerLife,
    reports: AnswerReports,
    clock: Clock,
    stages: BatchStages | undefined,
  ) {
    this.#slot = slot;
    this.#requests = requests;
    this.#life = life;
    this.#reports = reports;
    this.#clock = clock;
    this.#stages = stages;
  }

  /** Something waits to be sent. Hot. */
  schedule(): void {
    if (this.#flushScheduled || !this.#life.isReady) return;
    this.#flushScheduled = true;
    if (this.#stages !== undefined && this.#scheduledMs === 0)
      this.#scheduledMs = performance.now();
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  /** Ends a request, and sends what may be sent for that. Hot. */
  readonly finish = (request: PendingRequest): void => {
    if (this.#requests.finish(request)) this.schedule();
  };

  /** The worker stops a request that it has at its next slice. */
  cancel(requestId: number): void {
    this.#cancelled.push(requestId);
    this.schedule();
  }

  /** The worker was lost: the next one knows of none of this. */
  reset(): void {
    this.#batchesInFlight = 0;
    this.#cancelled = [];
    this.control.clear();
    this.acks.settleAll();
  }

  /** Gives a worker up that has a batch and was not heard for long. */
  endSilentWorker(): void {
    const { transport } = this.#life;
    if (transport === null || this.#batchesInFlight === 0) return;
    if (this.#clock.monotonicMs() - this.#heardAtMs < SILENT_MS_MAX) return;
    this.#life.lost(transport, new Error(`the worker was silent for ${SILENT_MS_MAX} ms`));
  }

  /** Answers of the present worker, in reply to a batch or by a message of their own. */
  arrived(answers: AnswerBatch): void {
    const { sent } = this.#requests;
    // First: requests that are answered are forgotten.
    for (const refusal of answers.refusals) {
      const origin = sent.get(refusal.requestId)?.scope.origin;
      this.#reports.onBudgetRefused(refusal, origin);
    }
    if (this.#stages === undefined) deliverRaw(answers, sent, this.finish);
    else {
      const mark = this.#stages.mark();
      deliverRaw(answers, sent, this.finish);
      this.#stages.answered(mark, answers.ids.length);
    }
    for (const response of answers.responses) deliverParsed(response, sent, this.finish);
    this.acks.arrived(answers.acks);
    for (const { projectId, modelVersion } of answers.modelsWanted) {
      const modelJson = this.#reports.modelJson(projectId, modelVersion);
      this.control.enqueue(
        modelJson === undefined
          ? { kind: 'modelUnknown', projectId, modelVersion }
          : { kind: 'setModel', ackId: 0, projectId, modelVersion, modelJson },
      );
      this.schedule();
    }
    if (answers.stats !== null) this.#reports.onStats(this.#slot, answers.stats);
    for (const report of answers.reports) this.#reports.onReport(this.#slot, report);
  }

  /** Sends at most what the worker takes now; the rest goes with the next reply. */
  #flush(): void {
    const stages = this.#stages;
    while (this.#life.isReady && this.#batchesInFlight < BATCHES_IN_FLIGHT_MAX) {
      const sinceMs = stages === undefined ? 0 : performance.now();
      const requests = this.#requests.takeBatch();
      if (requests.length === 0 && this.#cancelled.length === 0 && this.control.isEmpty) return;
      const { transport } = this.#life;
      if (transport === null) return;
      const cancelled = this.#cancelled;
      this.#cancelled = [];
      const batch = batchOfRequests(requests, cancelled, this.control.drain(), transport);
      if (this.#batchesInFlight === 0) this.#heardAtMs = this.#clock.monotonicMs();
      this.#batchesInFlight += 1;
      const sent = transport.send(batch);
      stages?.sent(this.#scheduledMs, sinceMs, requests.length);
      this.#scheduledMs = 0;
      sent.then(
        (answers) => {
          if (this.#life.transport !== transport) return;
          this.#batchesInFlight -= 1;
          this.#heardAtMs = this.#clock.monotonicMs();
          this.arrived(answers);
          this.#flush();
        },
        (cause: unknown) => {
          if (this.#life.transport === transport) this.#life.lost(transport, cause);
        },
      );
    }
  }
}
