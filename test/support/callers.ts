import { parseCallersFile } from '../../src/gateway/callers/callers-file.ts';
import { Callers } from '../../src/gateway/callers/callers.ts';

/** Callers of these tokens, which reach everything, and of a file in its JSON form; of neither: everybody is let in. */
export function callersOf(tokens: readonly string[] = [], file?: unknown): Callers {
  return new Callers({
    tokens,
    file: file === undefined ? undefined : parseCallersFile(JSON.stringify(file)),
    defaultProjectId: 'default',
    onKeysFetched: () => undefined,
  });
}
