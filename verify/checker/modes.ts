import type { Stored } from './evaluate.ts';
import type { Update } from './history.ts';

/** What is stored of a tuple after an insert: as `Stored` has it. */
function valueOf({ expiresMs }: Update): number {
  return expiresMs ?? 1;
}

/** The reason by which a write is refused over `stored` for what its first such update asks; '': it is not. */
export function refusalByModes(stored: Stored, updates: readonly Update[]): string {
  for (const update of updates) {
    const value = stored[update.tuple] ?? 0;
    if (update.mode === 'absent' && value !== 0) return 'TUPLE_EXISTS';
    if (update.mode === 'identical' && value !== 0 && value !== valueOf(update)) {
      return 'TUPLE_DIFFERS';
    }
    if (update.mode === 'present' && value === 0) return 'TUPLE_MISSING';
  }
  return '';
}

/** What is stored after a write that is not refused, and whether it had any effect. */
export function storedAfter(
  stored: Stored,
  updates: readonly Update[],
): { readonly stored: Stored; readonly isEffective: boolean } {
  const after = [...stored];
  let isEffective = false;
  for (const update of updates) {
    const { op, tuple, mode } = update;
    const isKept = mode === 'identical' && after[tuple] === valueOf(update);
    isEffective ||= op === 'insert' ? !isKept : after[tuple] !== 0;
    after[tuple] = op === 'delete' ? 0 : valueOf(update);
  }
  return { stored: after, isEffective };
}

/** Whether a write has an effect whatever is stored, unless it is refused. */
export function isAlwaysEffective(updates: readonly Update[]): boolean {
  return updates.some(({ op, mode }) => op === 'insert' && mode !== 'identical');
}
