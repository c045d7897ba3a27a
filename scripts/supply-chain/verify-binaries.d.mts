/** The SHA-256 of a file, in hexadecimal. */
export function sha256Of(path: string): string;
/** All that lies below a folder of a package, by path with slashes from the package, in order. */
export function listFiles(packageRoot: string, folder: string): string[];
/** One digest for many files: of lines as `sha256sum` prints them, in the order of the paths. */
export function digestOfAll(packageRoot: string, paths: readonly string[]): string;
