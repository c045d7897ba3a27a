import type { DecisionMethod } from '../../protocol/shard-client.ts';
import { BatchWork } from './batch-work.ts';
import { CheckWork } from './check-work.ts';
import { EvaluationJob, type JobWork } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './job.ts';
import { ListWork } from './list-work.ts';
import type { ReceivedRequest } from './received-request.ts';

/** The job of a request for a decision. Nothing is parsed before it is read or runs. */
export function decisionJob(
  context: JobContext,
  request: ReceivedRequest,
  method: DecisionMethod,
  waitUntilMsMax: number,
): Job {
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
