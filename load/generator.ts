/**
 * One process that asks a service, among several. Started by drive/generators.ts, which it talks to over the channel of
 * fork: its plan and credentials come that way, and a window of counts for each second goes back.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadClient, type Reply } from '../bench/harness/client.ts';
import { type Stage, dueAt, isOpen, shareOf } from './drive/load-plan.ts';
import type { GeneratorCommand, GeneratorMessage } from './drive/messages.ts';
import { type DueRequest, recordedQuestions } from './drive/recorded-questions.ts';
import { type Request, requestsOf } from './drive/requests.ts';
import { SecondWindow } from './drive/second-window.ts';

/** Requests that may be open or wait for a connection; what is due beyond them counts as not sent. */
const OPEN_MAX = 20_000;
/** How long answers are waited for at the end. */
const GRACE_MS = 10_000;

type Prepare = Extract<GeneratorCommand, { kind: 'prepare' }>;

/** What is due at a moment of performance.now(). */
type Due = { readonly dueMs: number; readonly next: () => Request };

function tell(message: GeneratorMessage): void {
  process.send?.(message);
}

class LoadGenerator {
  readonly #client: LoadClient;
  readonly #headers: Record<string, string> = {};
  readonly #prepared: Prepare;
  readonly #recorded: readonly DueRequest[];
  readonly #next: () => Request;
  /** Callers have given up what comes later. */
  readonly #deadlineMs: number;
  #startMs = 0;
  #second = 0;
  #window = new SecondWindow(0);
  #open = 0;
  isStopped = false;

  constructor(prepared: Prepare) {
    const { target, plan, replay, connections } = prepared;
    this.#prepared = prepared;
    this.#deadlineMs = plan?.deadlineMs ?? Infinity;
    if (plan?.deadlineMs !== undefined) {
      this.#headers['connect-timeout-ms'] = String(plan.deadlineMs);
    }
    // By it balancers find the instance, and a service that is full need not receive a body to refuse it.
    if (plan !== undefined) {
      this.#headers['x-gatehouse-shard'] = `${plan.project}/${encodeURI(plan.tenant)}`;
    }
    this.#client = new LoadClient({ baseUrl: target.url, connections, token: target.token });
    this.#recorded = replay === undefined ? [] : recordedQuestions(replay, prepared);
    this.#next = plan === undefined ? noRequest : requestsOf(plan, prepared);
  }

  /** Runs to the end, from a moment of the wall clock that all generators were told. */
  async run(atMs: number): Promise<void> {
    await sleep(Math.max(0, atMs - Date.now()));
    this.#startMs = performance.now();
    const timer = setInterval(() => this.#turn(), 50);
    const { plan, of, index } = this.#prepared;
    const recorded = this.#recorded.map(({ dueMs, request }) => {
      return { dueMs: this.#startMs + dueMs, next: () => request };
    });
    await this.#askAtTimes(recorded);
    let beginMs = this.#startMs;
    for (const whole of plan?.stages ?? []) {
      const stage = shareOf(whole, of, index);
      const endMs = beginMs + stage.seconds * 1000;
      // Generators take turns instead of asking at the same moments.
      if (isOpen(stage)) await this.#askAtTimes(arrivals(stage, beginMs, index / of, this.#next));
      else this.#startCallers(stage.callers, endMs);
      const isOver = (): boolean => this.isStopped || performance.now() >= endMs;
      while (!isOver()) await sleep(Math.min(20, Math.max(0, endMs - performance.now())));
      beginMs = endMs;
    }
    const untilMs = performance.now() + GRACE_MS;
    while (this.#open > 0 && performance.now() < untilMs) await sleep(5);
    clearInterval(timer);
    for (let i = 0; i < this.#open; i++) this.#window.refused('unanswered', 'no answer in time');
    tell({ kind: 'window', window: this.#window.close() });
    await this.#client.close();
  }

  /** Each is asked at its time, whatever became of those before it, and its latency counts from then. */
  async #askAtTimes(dues: Iterable<Due>): Promise<void> {
    for (const { dueMs, next } of dues) {
      while (!this.isStopped && performance.now() < dueMs) await sleep(1);
      if (this.isStopped) return;
      this.#askDue(next(), dueMs);
    }
  }

  #askDue(request: Request, dueMs: number): void {
    this.#window.offered += 1;
    if (this.#open >= OPEN_MAX) {
      this.#window.notSent += 1;
      return;
    }
    this.#window.late.record(performance.now() - dueMs);
    this.#ask(request, dueMs, () => undefined);
  }

  /** Each asks again once it was answered. */
  #startCallers(callers: number, endMs: number): void {
    const again = (): void => {
      const nowMs = performance.now();
      if (this.isStopped || nowMs >= endMs) return;
      this.#window.offered += 1;
      // A service that is gone is asked again a little later, not in a loop without an end.
      const onEnd = (isAnswered: boolean) => void (isAnswered ? again() : setTimeout(again, 20));
      this.#ask(this.#next(), nowMs, onEnd);
    };
    for (let i = 0; i < callers; i++) again();
  }

  #ask(
    { path, body, operation, faultOf }: Request,
    sinceMs: number,
    onEnd: (isAnswered: boolean) => void,
  ): void {
    this.#open += 1;
    const onReply = (answer?: Reply): void => {
      this.#open -= 1;
      if (answer?.status === 200) {
        const tookMs = performance.now() - sinceMs;
        if (tookMs > this.#deadlineMs) this.#window.refused(operation, 'after its deadline');
        else this.#window.answered(operation, tookMs, faultOf(answer.body));
      } else this.#window.refused(operation, refusalOf(answer));
      onEnd(answer !== undefined);
    };
    this.#client.post(path, body, onReply, this.#headers);
  }

  #turn(): void {
    const second = Math.floor((performance.now() - this.#startMs) / 1000);
    if (second === this.#second) return;
    tell({ kind: 'window', window: this.#window.close() });
    this.#second = second;
    this.#window = new SecondWindow(second);
  }
}

/** The code, reason and bound of an error in Connect's JSON; the first characters of anything else. */
function refusalOf(answer: Reply | undefined): string {
  if (answer === undefined) return 'connection lost';
  const text = answer.body.toString();
  const code = /"code":"([a-z_]+)"/.exec(text)?.[1];
  if (code === undefined) return text.slice(0, 80) || `HTTP ${answer.status}`;
  const reason = /"reason":"([A-Z_]+)"/.exec(text)?.[1];
  const bound = /"bound":"([a-z_]+)"/.exec(text)?.[1];
  return [code, reason, bound].filter((word) => word !== undefined).join(' ');
}

/** The requests of a stage at their times, one after another. */
function* arrivals(
  stage: Extract<Stage, { from: number }>,
  beginMs: number,
  phase: number,
  next: () => Request,
): Generator<Due> {
  for (let count = 0; ; count++) {
    const dueMs = beginMs + dueAt(stage, count + phase) * 1000;
    if (!(dueMs < beginMs + stage.seconds * 1000)) return;
    yield { dueMs, next };
  }
}

function noRequest(): never {
  throw new Error('recorded questions come without a plan');
}

let generator: LoadGenerator | undefined;

process.on('message', (command: GeneratorCommand) => {
  try {
    if (command.kind === 'prepare') {
      generator = new LoadGenerator(command);
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
