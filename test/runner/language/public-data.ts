import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A checkout of the public repository actions/languageservices (MIT), whose test data all of GitHub's
 * own parsers share. It is not part of this project: `LANGUAGE_SERVICES_DIR` says where one lies, and
 * tests on it are left out where there is none.
 */
const checkout = process.env['LANGUAGE_SERVICES_DIR'];

/** A folder of the checkout; undefined where there is none. */
export function publicData(folder: string): string | undefined {
  if (checkout === undefined) {
    return undefined;
  }
  const path = join(checkout, folder);
  if (!existsSync(path)) {
    throw new Error(`LANGUAGE_SERVICES_DIR has no ${folder}`);
  }
  return path;
}
