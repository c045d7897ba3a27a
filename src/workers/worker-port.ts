import type { MessagePort } from 'node:worker_threads';
import type {
  AnswerBatch,
  RequestBatch,
  WorkerMessage,
  WorkerReply,
} from '../protocol/messages.ts';
import { packAnswers, RequestUnpacker, transferOf } from '../protocol/packed-batch.ts';
import { transferablesOf } from './answer-writer.ts';

/** Sends answers to the gateway: those to batch `batch`, or with 0 deferred ones. */
export function postAnswers(port: MessagePort, batch: number, answers: AnswerBatch): void {
  const packed = packAnswers(batch, answers);
  if (packed === null) {
    const reply: WorkerReply = { batch, content: answers };
    port.postMessage(reply, transferablesOf(answers));
  } else port.postMessage(packed, transferOf(packed));
}

/**
 * The worker's side of its port: each batch is handled and answered in one turn. An error of
 * `handle` is not of one request, and ends the thread: the gateway then fails what it held.
 */
export function serveBatches(
  port: MessagePort,
  handle: (batch: RequestBatch) => AnswerBatch,
): void {
  const unpacker = new RequestUnpacker();
  port.on('message', (message: WorkerMessage) => {
    const { batch, content } = message instanceof ArrayBuffer ? unpacker.unpack(message) : message;
    postAnswers(port, batch, handle(content));
  });
}
