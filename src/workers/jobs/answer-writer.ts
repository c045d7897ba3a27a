import type {
  AnswerBatch,
  WorkerReport,
  WorkerResponse,
  WorkerStats,
} from '../../protocol/messages.ts';
import { ANSWER_BODY, ANSWER_LARGE_BODY } from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type { ErrorData } from '../../shared/app-error.ts';

const REPORTS_MAX = 64;
const REFUSALS_MAX = 64;
const FIRST_ANSWERS = 256;
const FIRST_BYTES = 64 * 1024;
/** From here on a body travels in a buffer of its own, transferred and never copied. */
const LARGE_BODY_BYTES = 64 * 1024;

/** Whether a body of so many bytes must own its buffer. */
export function isLargeBody(bytes: number): boolean {
  return bytes >= LARGE_BODY_BYTES;
}

/**
 * Gathers the answers of one turn into one message. Hot: no buffer is allocated but for its growth.
 */
export class AnswerWriter {
  #ids = new Float64Array(FIRST_ANSWERS);
  #kinds = new Uint8Array(FIRST_ANSWERS);
  #count = 0;
  #bodies = new Uint8Array(FIRST_BYTES);
  #bodiesEnd = 0;
  #bodyEnds = new Uint32Array(FIRST_ANSWERS);
  #bodyCount = 0;
  #largeBodies: Uint8Array[] = [];
  #responses: WorkerResponse[] = [];
  #acks: { readonly ackId: number; readonly error?: ErrorData | undefined }[] = [];
  #modelsWanted: { readonly projectId: string; readonly modelVersion: number }[] = [];
  #stats: WorkerStats | null = null;
  #reports: WorkerReport[] = [];
  #refusals: BudgetRefusal[] = [];

  get isEmpty(): boolean {
    return (
      this.#count === 0 &&
      this.#responses.length === 0 &&
      this.#acks.length === 0 &&
      this.#modelsWanted.length === 0 &&
      this.#stats === null &&
      this.#reports.length === 0 &&
      this.#refusals.length === 0
    );
  }

  /** An answer of ANSWER_ALLOWED or ANSWER_DENIED. */
  kind(requestId: number, kind: number): void {
    if (this.#count === this.#ids.length) this.#growAnswers();
    this.#ids[this.#count] = requestId;
    this.#kinds[this.#count] = kind;
    this.#count += 1;
  }

  /** A body, copied; a large one must own its buffer, which is given away. */
  body(requestId: number, body: Uint8Array): void {
    if (isLargeBody(body.length)) this.#largeBody(requestId, body);
    else this.space(requestId, body.length).set(body);
  }

  /** Memory for a body of `length` bytes, to be written before any other body is added; its old bytes are arbitrary. */
  space(requestId: number, length: number): Uint8Array {
    if (length >= LARGE_BODY_BYTES) return this.#largeBody(requestId, new Uint8Array(length));
    this.kind(requestId, ANSWER_BODY);
    if (this.#bodiesEnd + length > this.#bodies.length) this.#growBodies(length);
    const start = this.#bodiesEnd;
    this.#bodiesEnd += length;
    if (this.#bodyCount === this.#bodyEnds.length) {
      const grown = new Uint32Array(this.#bodyEnds.length * 2);
      grown.set(this.#bodyEnds);
      this.#bodyEnds = grown;
    }
    this.#bodyEnds[this.#bodyCount] = this.#bodiesEnd;
    this.#bodyCount += 1;
    return this.#bodies.subarray(start, this.#bodiesEnd);
  }

  #largeBody(requestId: number, body: Uint8Array): Uint8Array {
    this.kind(requestId, ANSWER_LARGE_BODY);
    this.#largeBodies.push(body);
    return body;
  }

  response(response: WorkerResponse): void {
    this.#responses.push(response);
  }

  error(requestId: number, error: ErrorData): void {
    this.#responses.push({ requestId, error });
  }

  ack(ackId: number, error?: ErrorData): void {
    this.#acks.push(error === undefined ? { ackId } : { ackId, error });
  }

  modelWanted(projectId: string, modelVersion: number): void {
    this.#modelsWanted.push({ projectId, modelVersion });
  }

  stats(stats: WorkerStats): void {
    this.#stats = stats;
  }

  /** Bounded: what comes in one turn beyond the bound is dropped. */
  report(report: WorkerReport): void {
    if (this.#reports.length < REPORTS_MAX) this.#reports.push(report);
  }

  /** Adds a refusal, up to REFUSALS_MAX. */
  refusal(refusal: BudgetRefusal): void {
    if (this.#refusals.length < REFUSALS_MAX) this.#refusals.push(refusal);
  }

  /**
   * Everything gathered. Empties the writer: the numbers and short bodies are views of its buffers, which the next
   * answers overwrite. (Buffers outside of the heap make the collector mark all of it long before it is full.)
   */
  drain(): AnswerBatch {
    const taken: AnswerBatch = {
      ids: this.#ids.subarray(0, this.#count),
      kinds: this.#kinds.subarray(0, this.#count),
      bodies: this.#bodies.subarray(0, this.#bodiesEnd),
      bodyEnds: this.#bodyEnds.subarray(0, this.#bodyCount),
      largeBodies: this.#largeBodies,
      responses: this.#responses,
      acks: this.#acks,
      modelsWanted: this.#modelsWanted,
      stats: this.#stats,
      reports: this.#reports,
      refusals: this.#refusals,
    };
    this.#count = 0;
    this.#bodiesEnd = 0;
    this.#bodyCount = 0;
    this.#largeBodies = [];
    this.#responses = [];
    this.#acks = [];
    this.#modelsWanted = [];
    this.#stats = null;
    this.#reports = [];
    this.#refusals = [];
    return taken;
  }

  #growAnswers(): void {
    const ids = new Float64Array(this.#ids.length * 2);
    ids.set(this.#ids);
    this.#ids = ids;
    const kinds = new Uint8Array(this.#kinds.length * 2);
    kinds.set(this.#kinds);
    this.#kinds = kinds;
  }

  #growBodies(needed: number): void {
    let length = this.#bodies.length * 2;
    while (length < this.#bodiesEnd + needed) length *= 2;
    const bodies = new Uint8Array(length);
    bodies.set(this.#bodies.subarray(0, this.#bodiesEnd));
    this.#bodies = bodies;
  }
}

/** Copies the result of `drain` into buffers of its own: a message that is not packed would carry whole buffers. */
export function ownAnswers(taken: AnswerBatch): AnswerBatch {
  return {
    ...taken,
    ids: taken.ids.slice(),
    kinds: taken.kinds.slice(),
    bodies: taken.bodies.slice(),
    bodyEnds: taken.bodyEnds.slice(),
  };
}

/** The buffers of a message that can be transferred instead of copied. */
export function transferablesOf(answers: AnswerBatch): ArrayBuffer[] {
  const list: ArrayBuffer[] = [];
  if (answers.bodies.byteLength > 0) list.push(answers.bodies.buffer as ArrayBuffer);
  for (const body of answers.largeBodies) list.push(body.buffer as ArrayBuffer);
  return list;
}
