import type { StepFrame } from './job-state.ts';
import type { StageDefinition } from './step-plan.ts';

/** Leaves a stage to the end of the job, unless the step `key` of the frame left one already. */
export function addPostStep(
  frame: StepFrame,
  key: string,
  post: { readonly name: string; readonly definition: StageDefinition },
): void {
  const { posts } = frame.job;
  const stateKey = frame.path + key;
  if (posts.some((other) => other.key === stateKey)) return;
  posts.push({ ...post, frame, key: stateKey });
}
