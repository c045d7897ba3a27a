import type { RequestBatch } from '../../protocol/messages.ts';
import type { DecisionMethod } from '../../protocol/shard-client.ts';
import { isQuery } from '../../requests/decode-request.ts';
import type { BatchBodies } from '../jobs/batch-bodies.ts';
import { BatchWork } from '../jobs/batch-work.ts';
import { CheckWork } from '../jobs/check-work.ts';
import { EvaluationJob, type JobWork } from '../jobs/evaluation-job.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { ReadJob } from '../jobs/job.ts';
import { ListWork } from '../jobs/list-work.ts';
import { ReceivedRequest } from '../jobs/received-request.ts';
import { receivedQueryJob } from './received-query-job.ts';

/** The job of the raw request at `field` of `batch.raw`, whose bodies are `bodies`. Nothing is parsed before it is read or runs. */
export function rawJob(
  context: JobContext,
  batch: RequestBatch,
  bodies: BatchBodies,
  field: number,
  waitUntilMsMax: number,
): ReadJob {
  const request = new ReceivedRequest(context, batch, bodies, field);
  const { method } = request;
  return isQuery(method)
    ? receivedQueryJob(context, request, method, waitUntilMsMax)
    : decisionJob(context, request, method, waitUntilMsMax);
}

/** The job of a request for a decision. Nothing is parsed before it is read or runs. */
export function decisionJob(
  context: JobContext,
  request: ReceivedRequest,
  method: DecisionMethod,
  waitUntilMsMax: number,
): ReadJob {
  return new EvaluationJob(context, request, waitUntilMsMax, workOf(context, request, method));
}

function workOf(context: JobContext, request: ReceivedRequest, method: DecisionMethod): JobWork {
  switch (method) {
    case 'check':
      return new CheckWork(context, request);
    case 'batchCheck':
      return new BatchWork(context, request);
    case 'listObjects':
      return new ListWork(context, request);
  }
}
