/** A process that finds no loader of glibc's programs, as with musl. */
const PROGRAM = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { existsSync } = fs;
fs.existsSync = (path) => !/^\\/lib(64)?\\/ld-linux-/.test(path) && existsSync(path);
syncBuiltinESMExports();`;

/** For NODE_OPTIONS. */
export const WITHOUT_GLIBC = `--import data:text/javascript,${encodeURIComponent(PROGRAM)}`;
