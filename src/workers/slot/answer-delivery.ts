import type { AuthzReason } from '../../model/reasons.ts';
import type { AnswerBatch, WorkerResponse } from '../../protocol/messages.ts';
import {
  ANSWER_ALLOWED,
  ANSWER_BODY,
  ANSWER_DENIED,
  ANSWER_LARGE_BODY,
} from '../../protocol/messages.ts';
import type { RawAnswer } from '../../protocol/shard-client.ts';
import { AppError, errorFromData } from '../../shared/app-error.ts';
import { ParsedRequest, PendingRawRequest } from '../queues/pending-request.ts';
import type { SentRequests } from '../queues/sent-requests.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';

const ALLOWED: RawAnswer = { kind: 'allowed' };
const DENIED: RawAnswer = { kind: 'denied' };

/** Gives the answers of a batch to the callers of raw requests; `finish` counts each as answered before. Hot. */
export function deliverRaw(
  answers: AnswerBatch,
  sent: SentRequests,
  finish: (request: PendingRequest) => void,
): void {
  const { ids, kinds, bodies, bodyEnds, largeBodies } = answers;
  let bodyIndex = 0;
  let bodyStart = 0;
  let largeIndex = 0;
  for (let i = 0; i < ids.length; i++) {
    const kind = kinds[i];
    let body: Uint8Array | undefined;
    if (kind === ANSWER_BODY) {
      const end = bodyEnds[bodyIndex] as number; // one per ANSWER_BODY
      bodyIndex += 1;
      body = bodies.subarray(bodyStart, end);
      bodyStart = end;
    } else if (kind === ANSWER_LARGE_BODY) {
      body = largeBodies[largeIndex];
      largeIndex += 1;
    }
    const request = sent.get(ids[i] as number); // below length
    if (!(request instanceof PendingRawRequest)) continue; // cancelled meanwhile
    finish(request);
    if (kind === ANSWER_ALLOWED) request.onAnswer(ALLOWED);
    else if (kind === ANSWER_DENIED) request.onAnswer(DENIED);
    else if (body !== undefined) request.onAnswer({ kind: 'body', body });
    else request.fail(new AppError<AuthzReason>('INTERNAL', 'internal error'));
  }
}

/** Gives an error, or an answer or a part of one to the caller of a query; `finish` counts it as answered before. */
export function deliverParsed(
  response: WorkerResponse,
  sent: SentRequests,
  finish: (request: PendingRequest) => void,
): void {
  const request = sent.get(response.requestId);
  if (request === undefined) return; // cancelled meanwhile
  if (response.error !== undefined) {
    finish(request);
    request.fail(errorFromData(response.error));
  } else if (request instanceof ParsedRequest) {
    if (!response.isPart) finish(request);
    request.onAnswer(response.result, response.isPart);
  } else {
    finish(request);
    request.fail(new AppError<AuthzReason>('INTERNAL', 'internal error'));
  }
}
