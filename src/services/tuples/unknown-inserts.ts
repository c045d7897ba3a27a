import { missingPart, unknownText } from '../../model/namespace/unknown-relation.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ProjectRules, WriteRules } from '../writes/write-rules.ts';

/**
 * The refusal of a tuple that is to be stored, which `at` names in messages, or undefined: its project refuses what the typed
 * model in force does not have. Of gatehouse.v1 alone; workspace.v1 stores it. Hot where no rules are.
 */
export function refusalOfUnknown(
  { models: [inForce], refusesUnknown }: ProjectRules,
  { namespace, relation }: RelationTuple,
  at: string,
): AppError<AuthzReason> | undefined {
  if (!refusesUnknown || inForce === undefined) return undefined;
  const missing = missingPart(inForce, namespace, relation);
  if (missing === undefined) return undefined;
  const { problem, meant } = unknownText(inForce, namespace, relation, missing);
  const field = `${at}.${missing}`;
  return new AppError<AuthzReason>('RELATION_UNKNOWN', `${field}: ${problem}`, {
    field,
    ...(meant === undefined ? {} : { meant }),
  });
}

/**
 * The refusal of updates of which one inserts such a tuple, by rules read after it came; undefined: none does.
 * Deletes are never refused. Errors: those of `rules`.
 */
export async function certainlyUnknown(
  rules: WriteRules,
  { projectId }: ShardKey,
  updates: readonly TupleChange[],
): Promise<AppError<AuthzReason> | undefined> {
  const known = firstUnknown(await rules.of(projectId), updates);
  return known === undefined ? undefined : firstUnknown(await rules.fresh(projectId), updates);
}

function firstUnknown(
  rules: ProjectRules,
  updates: readonly TupleChange[],
): AppError<AuthzReason> | undefined {
  if (!rules.refusesUnknown) return undefined;
  for (const [index, { op, tuple }] of updates.entries()) {
    const refusal =
      op === 'delete' ? undefined : refusalOfUnknown(rules, tuple, `updates[${index}].tuple`);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
