import type { RequestBatch } from '../../protocol/messages.ts';
import { isQuery } from '../../requests/decode-request.ts';
import type { BatchBodies } from '../jobs/batch-bodies.ts';
import { decisionJob } from '../jobs/decision-job.ts';
import type { JobContext } from '../jobs/job-context.ts';
import type { Job } from '../jobs/job.ts';
import { ReceivedRequest } from '../jobs/received-request.ts';
import { receivedQueryJob } from './received-query-job.ts';

/** The job of the raw request at `field` of `batch.raw`, whose bodies are `bodies`. Nothing is parsed before it is read or runs. */
export function rawJob(
  context: JobContext,
  batch: RequestBatch,
  bodies: BatchBodies,
  field: number,
  waitUntilMsMax: number,
): Job {
  const request = new ReceivedRequest(context, batch, bodies, field);
  const { method } = request;
  return isQuery(method)
    ? receivedQueryJob(context, request, method, waitUntilMsMax)
    : decisionJob(context, request, method, waitUntilMsMax);
}
