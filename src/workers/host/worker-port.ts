import type { MessagePort } from 'node:worker_threads';
import { type BatchTimes, monotonicMs } from '../../protocol/batch-times.ts';
import type {
  AnswerBatch,
  RequestBatch,
  WorkerMessage,
  WorkerReply,
} from '../../protocol/messages.ts';
import { RAW_FIELDS } from '../../protocol/messages.ts';
import { packAnswers, RequestUnpacker, transferOf } from '../../protocol/packed-batch.ts';
import { ownAnswers, transferablesOf } from '../jobs/answer-writer.ts';

/** Sends answers to the gateway: those to batch `batch`, or with 0 deferred ones. */
export function postAnswers(port: MessagePort, batch: number, answers: AnswerBatch): void {
  const packed = packAnswers(batch, answers);
  if (packed === null) {
    const content = ownAnswers(answers);
    const reply: WorkerReply = { batch, content };
    port.postMessage(reply, transferablesOf(content));
  } else port.postMessage(packed, transferOf(packed));
}

/**
 * The worker's side of its port: each batch is handled and answered in one turn, and `handle` keeps
 * nothing of its bodies, whose memory may be the gateway's again then. An error of
 * `handle` is not of one request, and ends the thread: the gateway then fails what it held. `times` are kept
 * where stages are measured.
 */
export function serveBatches(
  port: MessagePort,
  handle: (batch: RequestBatch) => AnswerBatch,
  times: BatchTimes | null = null,
): void {
  const unpacker = new RequestUnpacker();
  const answer = (batch: number, content: RequestBatch, receivedMs: number): void => {
    const answers = handle(content);
    if (times !== null) times.handled(batch, receivedMs, callsOf(content));
    postAnswers(port, batch, answers);
  };
  const memories: SharedArrayBuffer[] = [];
  port.on('message', (message: WorkerMessage) => {
    const receivedMs = times === null ? 0 : monotonicMs();
    if (typeof message === 'number') {
      const memory = memories[message];
      if (memory === undefined) throw new Error('a batch in memory that was not announced');
      const { batch, content } = unpacker.unpack(memory);
      answer(batch, content, receivedMs);
    } else if (message instanceof ArrayBuffer) {
      const { batch, content } = unpacker.unpack(message);
      answer(batch, content, receivedMs);
    } else if ('memory' in message) {
      memories[message.memory] = message.buffer;
    } else {
      answer(message.batch, message.content, receivedMs);
    }
  });
}

function callsOf({ raw, requests }: RequestBatch): number {
  return raw.length / RAW_FIELDS + requests.length;
}
