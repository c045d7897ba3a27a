import type { RequestBatch } from '../../protocol/messages.ts';
import type { BatchBodies } from './batch-bodies.ts';
import { BatchWork } from './batch-work.ts';
import { CheckWork } from './check-work.ts';
import { EvaluationJob, type JobWork } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './job.ts';
import { ListWork } from './list-work.ts';
import { ReceivedRequest } from './received-request.ts';

/**
 * The job of the raw request at `field` of `batch.raw`, whose bodies are `bodies`. Nothing is parsed
 * before it is read or runs.
 */
export function rawJob(
  context: JobContext,
  batch: RequestBatch,
  bodies: BatchBodies,
  field: number,
  waitUntilMsMax: number,
): Job {
  const request = new ReceivedRequest(context, batch, bodies, field);
  return new EvaluationJob(context, request, waitUntilMsMax, workOf(context, request));
}

function workOf(context: JobContext, request: ReceivedRequest): JobWork {
  switch (request.method) {
    case 'check':
      return new CheckWork(context, request);
    case 'batchCheck':
      return new BatchWork(context, request);
    case 'listObjects':
      return new ListWork(context, request);
  }
}
