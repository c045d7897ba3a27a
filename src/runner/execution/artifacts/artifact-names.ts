import { AppError } from '../../../shared/app-error.ts';

const NAME_CHARACTERS_MAX = 255;
const ENTRY_CHARACTERS_MAX = 4_096;
/** What artifact names and paths may not hold: the list of @actions/artifact, and control characters. */
// oxlint-disable-next-line no-control-regex -- those are what is refused
const INVALID_IN_PATH = /["<>|*?:\u0000-\u001f\u007f]/;
// oxlint-disable-next-line no-control-regex -- those are what is refused
const INVALID_IN_NAME = /["<>|*?:\\/\u0000-\u001f\u007f]/;
/** Device names of Windows, with any extension: files of that name cannot be unpacked there. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;

/** Errors: INVALID_NAME for a name that an artifact cannot have, naming the input `field` that it is from. */
export function mustArtifactName(name: string, field: 'name' | 'path' = 'name'): void {
  const isFine =
    name.trim() !== '' &&
    name.length <= NAME_CHARACTERS_MAX &&
    name !== '.' &&
    name !== '..' &&
    !INVALID_IN_NAME.test(name) &&
    !RESERVED.test(name);
  if (!isFine) {
    const text = `${field}: An artifact has a name of 1 to 255 characters without " : < > | * ? \\ / and control characters`;
    throw new AppError('INVALID_NAME', text, { field });
  }
}

/** Errors: INVALID_NAME for a path within an artifact that is absolute, leaves it or cannot be unpacked everywhere. */
export function mustEntryName(entry: string): void {
  const parts = entry.split('/');
  const isFine =
    entry.length <= ENTRY_CHARACTERS_MAX &&
    !INVALID_IN_PATH.test(entry) &&
    !entry.includes('\\') &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isFine) {
    throw new AppError('INVALID_NAME', `An artifact cannot hold a file '${entry}'`, { entry });
  }
}
