import type { JsonObject } from '../../model/run.ts';
import { authorOf } from './event-subject.ts';

/** RUNNER_FORK_APPROVAL: which runs of forks wait for somebody to approve them. */
export type ForkApproval = 'always' | 'first-time' | 'refuse';

/** Accounts that the host knows to have had something taken into the repository, or to belong to it. */
const KNOWN_ASSOCIATIONS: ReadonlySet<string> = new Set([
  'OWNER',
  'MEMBER',
  'COLLABORATOR',
  'CONTRIBUTOR',
]);

/**
 * Whether a run of a fork waits for approval. `first-time`: not when the host says that the author has
 * contributed before or belongs to the repository, nor when a run of theirs was approved here.
 */
export function needsApproval(
  approval: ForkApproval,
  payload: JsonObject,
  wasApproved: (authorId: string) => boolean,
): boolean {
  if (approval !== 'first-time') return true;
  const author = authorOf(payload);
  if (author === undefined) return true;
  return !KNOWN_ASSOCIATIONS.has(author.association) && !wasApproved(author.id);
}
