import type { Template } from '../model/workflow.ts';

/** The source of a key that puts the entries of its value in its place: `${{ insert }}`. */
export const INSERT = 'insert';

/** Whether a key of a mapping is `${{ insert }}`; no context has that name. */
export function isInsertKey(key: Template): boolean {
  return key.kind === 'expression' && key.source === INSERT;
}
