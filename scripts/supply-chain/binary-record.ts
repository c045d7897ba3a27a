import { readFileSync } from 'node:fs';

/** What is known of one package of third-party binaries; binaries.json has them by their folder in node_modules. */
export type BinaryPackage = {
  /** As npm has it, name@version. */
  package: string;
  readonly upstream: {
    readonly name: string;
    readonly version: string;
    readonly licence: string;
    readonly home: string;
    /** The archive that upstream publishes, where one was compared. */
    readonly archive?: { readonly name: string; readonly sha256?: string };
    /** How the package was compared with it, in words. */
    readonly comparison: string;
  };
  /** Libraries of others in the package. */
  readonly bundled?: readonly {
    readonly name: string;
    readonly version: string;
    readonly licence: string;
  }[];
  /** Begins the paths that this platform needs, where a package holds those of several. */
  readonly platformFiles?: string;
  /** Folders in which nothing else may lie. */
  readonly roots: readonly string[];
  /** SHA-256 by path. */
  files: Record<string, string>;
  /** One digest of all other files below the roots. */
  rest?: string;
};

export const BINARY_RECORD = new URL('binaries.json', import.meta.url);

/** Reads binaries.json. Errors: those of the file system and of JSON. */
export function readBinaryRecord(): Record<string, BinaryPackage> {
  return JSON.parse(readFileSync(BINARY_RECORD, 'utf8')) as Record<string, BinaryPackage>;
}
