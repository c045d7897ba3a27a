import type { JournalRecord } from '../model/storage.ts';
import type { StatePair } from './run-recorder.ts';
import type { RunRecord } from './state/journal-records.ts';
import { applyRecord } from './state/run-state-reducer.ts';
import type { RunState } from './state/run-state.ts';

/**
 * The state that the records of a journal lead to, twice: one to go on with, one to show. Undefined
 * when there is none. A record that cannot follow ends it, as a torn line would; `onRefused` is reported.
 */
export function replayRecords(
  records: readonly JournalRecord[],
  onRefused: (error: Error) => void,
): StatePair | undefined {
  let live: RunState | undefined;
  let visible: RunState | undefined;
  for (const record of records as unknown as readonly RunRecord[]) {
    try {
      live = applyRecord(live, record);
      visible = applyRecord(visible, record);
    } catch (error) {
      onRefused(error instanceof Error ? error : new Error(String(error)));
      break;
    }
  }
  return live === undefined || visible === undefined ? undefined : { live, visible };
}
