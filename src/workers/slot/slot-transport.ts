import type { BatchSpace } from '../../protocol/batch-memory.ts';
import type { AnswerBatch, RequestBatch } from '../../protocol/messages.ts';

/** Events that a transport hands to its slot, outside the replies to batches. */
export type SlotEvents = {
  /** Deferred answers, statistics and wanted models, by a message of their own. */
  readonly onAnswers: (answers: AnswerBatch) => void;
  /** The worker has gone; called at most once, and nothing is delivered after it. */
  readonly onLost: (cause: unknown) => void;
};

/**
 * One life of one worker: started once, lost or stopped once. A restarted worker is a new
 * transport in the same slot. Implemented over Piscina and, for tests, in process.
 */
export interface SlotTransport {
  /** Resolves when the worker sent hello with our protocol version. Errors: rejects when it cannot start. */
  start(events: SlotEvents): Promise<void>;
  /** The best memory to write a batch of raw requests alone into, which is then the next one sent; or null. */
  space(requests: number, bodyBytes: number): BatchSpace | null;
  /** The reply to one batch. Errors: rejects when the worker is lost meanwhile. */
  send(batch: RequestBatch): Promise<AnswerBatch>;
  /** The id of the request that was under evaluation when last written, or 0. Readable after a crash. */
  underEvaluation(): number;
  /** The part of the time since the last call that the worker was busy, 0 to 1; 0 where that is not known. */
  utilization(): number;
  /** Ends the worker. Idempotent. */
  stop(): Promise<void>;
}

/** Makes the transport of a slot's next life. */
export type CreateTransport = (slot: number) => SlotTransport;
