import { BACKSTOP_CYCLE, BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { type Scope, UNDETERMINED } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import type { ObjectWalk } from '../general/object-walk.ts';
import type { AskedSubject } from './asked-subject.ts';

/**
 * Whether Check could not decide some object of a list's range that is not listed. That is one of `denied`, or one
 * that `walk`, which has ended, reaches through an undecided tuple. True, too, where the budget ends before that is
 * known. An object to which no way leads from the subject is not visited.
 */
export function* anyUndecided(
  scope: Scope,
  walk: ObjectWalk,
  asked: AskedSubject,
  isInRange: (entity: number) => boolean,
  denied: readonly number[],
): Steps<boolean> {
  // If the walk met nothing undecided, every denied object is denied for certain.
  const isOpen = scope.hasUndecided || (scope.backstops & (BACKSTOP_DEPTH | BACKSTOP_CYCLE)) !== 0;
  if (!walk.hasUndecided && !(asked.isSecondSearchNeeded && isOpen)) return false;
  if (scope.isExhausted) return true;
  try {
    for (const entity of denied) {
      if ((yield* asked.decideAgain(entity)) === UNDETERMINED) return true;
    }
    const first = walk.count;
    walk.followUndecided();
    yield* asked.beginAgain();
    let next = first;
    for (let isMore = true; isMore;) {
      isMore = walk.step();
      yield;
      for (; next < walk.count; next++) {
        const entity = walk.entityAt(next);
        if (!isInRange(entity)) continue;
        if (walk.isUndecidedAt(next)) return true;
        if ((yield* asked.decideAgain(entity)) === UNDETERMINED) return true;
      }
    }
    return false;
  } catch (error) {
    if (!scope.isExhausted) throw error;
    return true;
  }
}
