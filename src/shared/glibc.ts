import { existsSync } from 'node:fs';

/** What loads programs that were made for glibc, by architecture (the interpreter that their ELF header names). */
const LOADERS: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/** Whether this is a Linux on which programs made for glibc do not start, as with musl: the system says of them that they are not there (ENOENT). */
export function lacksGlibc(): boolean {
  const loader = LOADERS[process.arch];
  return process.platform === 'linux' && loader !== undefined && !existsSync(loader);
}
