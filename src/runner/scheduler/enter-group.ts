import { groupKey, type ConcurrencySetting } from './concurrency-groups.ts';
import type { NodeJob, RunContext } from './run-context.ts';

/**
 * Waits until the job is the one of its concurrency group. Answers how to leave it; undefined when it
 * was cancelled while it waited, or would wait for its own run for ever.
 */
export async function enterGroup(
  context: RunContext,
  matrixJob: NodeJob,
  setting: ConcurrencySetting | undefined,
): Promise<(() => void) | undefined> {
  if (setting === undefined) return () => undefined;
  const { jobId, cancellation } = matrixJob;
  const say = (message: string): void => {
    context.annotate({ level: 'error', message, jobId });
  };
  if (matrixJob.scope.heldGroups.has(groupKey(setting.group))) {
    say(
      `Canceling since a deadlock was detected for concurrency group: '${setting.group}' between a top level workflow and '${matrixJob.definition.key}'`,
    );
    return undefined;
  }
  if (cancellation.isCancelled) return undefined;
  const entered = Promise.withResolvers<boolean>();
  const leave = context.groups.join(setting, {
    isUrgent: true,
    enter: () => entered.resolve(true),
    evict: (why) => {
      if (cancellation.isCancelled) return;
      say(why);
      cancellation.cancel('cancel', 'group');
    },
  });
  const unfollow = cancellation.onCancel(() => entered.resolve(false));
  const isIn = await entered.promise;
  unfollow();
  if (isIn && !cancellation.isCancelled) return leave;
  leave();
  return undefined;
}
