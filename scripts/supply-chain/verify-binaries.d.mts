/** What binaries.json says of one package. */
type BinaryPackage = {
  readonly upstream: { readonly name: string; readonly licence: string };
  /** Libraries of others in the package. */
  readonly bundled?: readonly { readonly name: string; readonly licence: string }[];
  /** How the paths begin of those files that are loaded here, with `{platform}` and `{arch}`. Without it all are. */
  readonly platformFiles?: string;
  /** Folders in which nothing else may lie. */
  readonly roots: readonly string[];
  /** SHA-256 by path. */
  readonly files: Readonly<Record<string, string>>;
  /** One digest of all other files below the roots. */
  readonly rest?: string;
};

/** binaries.json. */
export function readRecord(): Record<string, BinaryPackage>;
/** A sentence for each thing that is wrong below `root`. */
export function verifyBinaries(
  root: string,
  record?: Readonly<
    Record<string, Pick<BinaryPackage, 'roots' | 'files' | 'rest' | 'platformFiles'>>
  >,
): readonly string[];
