/**
 * One process that asks a service, among several. Started by drive/generators.ts, which it talks to over the channel of
 * fork: its plan and credentials come that way, and a window of counts for each second goes back.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { dueAt, shareOf } from './drive/arrival-times.ts';
import { type Stage, isOpen } from './drive/load-plan.ts';
import type { GeneratorCommand, GeneratorMessage } from './drive/messages.ts';
import { type DueRequest, recordedQuestions } from './drive/recorded-questions.ts';
import { type Request, requestsOf } from './drive/requests.ts';
import { SecondWindow } from './drive/second-window.ts';
import { type Transport, openTransport } from './drive/transport.ts';
import { refusalOf } from './harness/refusal.ts';

/** Requests that may be open or wait for a connection; what is due beyond them counts as not sent. */
const OPEN_MAX = 20_000;
/** How long answers are waited for at the end. */
const GRACE_MS = 10_000;

type Prepare = Extract<GeneratorCommand, { kind: 'prepare' }>;

/** What it works through: requests at their times, and those of callers. */
type Work =
  | { readonly stages: readonly Stage[]; readonly next: () => Request }
  | { readonly due: readonly DueRequest[] };

function tell(message: GeneratorMessage): void {
  process.send?.(message);
}

class Generator {
  readonly #transport: Transport;
  readonly #work: Work;
  readonly #index: number;
  readonly #of: number;
  #startMs = 0;
  #second = 0;
  #window = new SecondWindow(0);
  #open = 0;
  isStopped = false;

  constructor({ target, plan, replay, index, of, connections, runId }: Prepare) {
    const headers: Record<string, string> = {};
    if (plan?.deadlineMs !== undefined) headers['connect-timeout-ms'] = String(plan.deadlineMs);
    this.#transport = openTransport(target, connections, headers);
    this.#index = index;
    this.#of = of;
    if (replay !== undefined) {
      this.#work = { due: recordedQuestions(replay, this.#transport, { index, of }) };
    } else if (plan !== undefined) {
      const stages = plan.stages.map((stage) => shareOf(stage, of, index));
      this.#work = { stages, next: requestsOf(plan, this.#transport, { index, of, runId }) };
    } else throw new Error('neither a plan nor recorded questions');
  }

  /** Runs to the end, from a moment of the wall clock that all generators were told. */
  async run(atMs: number): Promise<void> {
    await sleep(Math.max(0, atMs - Date.now()));
    this.#startMs = performance.now();
    const timer = setInterval(() => this.#turn(), 50);
    if ('due' in this.#work) await this.#askAtTimes(this.#work.due);
    else {
      let beginMs = this.#startMs;
      for (const stage of this.#work.stages) {
        const endMs = beginMs + stage.seconds * 1000;
        if (isOpen(stage)) await this.#arrivals(stage, beginMs, this.#work.next);
        else await this.#callers(stage.callers, endMs, this.#work.next);
        beginMs = endMs;
      }
    }
    const untilMs = performance.now() + GRACE_MS;
    while (this.#open > 0 && performance.now() < untilMs) await sleep(5);
    clearInterval(timer);
    for (let i = 0; i < this.#open; i++) this.#window.refused('unanswered', 'no answer in time');
    tell({ kind: 'window', window: this.#window.close() });
    await this.#transport.close();
  }

  /** Request i is due at its time, whatever became of those before it, and its latency counts from then. */
  async #arrivals(
    stage: Extract<Stage, { from: number }>,
    beginMs: number,
    next: () => Request,
  ): Promise<void> {
    // Generators take turns instead of asking at the same moments.
    const phase = this.#index / this.#of;
    for (let count = 0; !this.isStopped;) {
      const nowMs = performance.now();
      let dueMs = beginMs + dueAt(stage, count + phase) * 1000;
      while (dueMs <= nowMs && dueMs < beginMs + stage.seconds * 1000) {
        this.#askDue(next(), dueMs);
        count += 1;
        dueMs = beginMs + dueAt(stage, count + phase) * 1000;
      }
      if (!(dueMs < beginMs + stage.seconds * 1000)) break;
      await sleep(1);
    }
    await sleepUntil(beginMs + stage.seconds * 1000, () => this.isStopped);
  }

  async #askAtTimes(due: readonly DueRequest[]): Promise<void> {
    let next = 0;
    while (next < due.length && !this.isStopped) {
      const nowMs = performance.now() - this.#startMs;
      for (let one = due[next]; one !== undefined && one.dueMs <= nowMs; one = due[++next]) {
        this.#askDue(one.request, this.#startMs + one.dueMs);
      }
      await sleep(1);
    }
  }

  #askDue(request: Request, dueMs: number): void {
    this.#window.offered += 1;
    if (this.#open >= OPEN_MAX) {
      this.#window.notSent += 1;
      return;
    }
    this.#window.sentLate(performance.now() - dueMs);
    this.#ask(request, dueMs, () => undefined);
  }

  /** Each asks again once it was answered. */
  async #callers(callers: number, endMs: number, next: () => Request): Promise<void> {
    const again = (): void => {
      const nowMs = performance.now();
      if (this.isStopped || nowMs >= endMs) return;
      this.#window.offered += 1;
      // A service that is gone is asked again a little later, not in a loop without an end.
      this.#ask(next(), nowMs, (isAnswered) => void (isAnswered ? again() : setTimeout(again, 20)));
    };
    for (let i = 0; i < callers; i++) again();
    await sleepUntil(endMs, () => this.isStopped);
  }

  #ask(request: Request, sinceMs: number, onEnd: (isAnswered: boolean) => void): void {
    this.#open += 1;
    request.send(
      () => undefined,
      (answer) => {
        this.#open -= 1;
        const nowMs = performance.now();
        if (answer?.status === 200) {
          this.#window.answered(request.operation, nowMs - sinceMs, request.faultOf(answer.body));
        } else {
          const text = answer?.body.toString() ?? '';
          const why = answer === undefined ? 'connection lost' : refusalOf(text);
          this.#window.refused(request.operation, why === '' ? `HTTP ${answer?.status}` : why);
        }
        onEnd(answer !== undefined);
      },
    );
  }

  #turn(): void {
    const second = Math.floor((performance.now() - this.#startMs) / 1000);
    if (second === this.#second) return;
    tell({ kind: 'window', window: this.#window.close() });
    this.#second = second;
    this.#window = new SecondWindow(second);
  }
}

async function sleepUntil(untilMs: number, isOver: () => boolean): Promise<void> {
  while (!isOver() && performance.now() < untilMs) {
    await sleep(Math.min(20, Math.max(0, untilMs - performance.now())));
  }
}

let generator: Generator | undefined;

process.on('message', (command: GeneratorCommand) => {
  try {
    if (command.kind === 'prepare') {
      generator = new Generator(command);
      tell({ kind: 'ready' });
    } else if (command.kind === 'go') {
      void generator?.run(command.atMs).then(() => tell({ kind: 'done' }));
    } else if (generator !== undefined) generator.isStopped = true;
  } catch (error) {
    tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
});
// Interrupts of the terminal reach all processes; the one that started this ends it in order.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
