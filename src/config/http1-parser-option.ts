import { statSync } from 'node:fs';
import { AppError } from '../shared/app-error.ts';
import { checksumOfFile } from '../shared/checksum-of-file.ts';
import type { SharedReason } from '../shared/reasons.ts';
import type { Option } from './option.ts';

/** The parser of HTTP/1.1, as HttpServerOptions names it. */
type Parser = 'uws' | 'node' | `sha256:${string}`;

/** A checksum as `sha256sum` prints it, and an absolute path. */
const OWN_BUILD = /^sha256:([0-9a-f]{64}):(\/[^\0]+)$/;
const RANGE = 'uws, node, sha256:CHECKSUM:/PATH';

/**
 * The parser of HTTP/1.1. Reads the file of a named build, so that a wrong checksum is reported
 * like any other wrong setting.
 * Errors: `parse` throws CONFIG_INVALID with both checksums, or with the reason why the file cannot
 * be read.
 */
export function http1ParserOption(env: string): Option<Parser> {
  return {
    env,
    description:
      'Parser of HTTP/1.1. `uws` is uWebSockets.js, with node:http for connections that begin with an unusual head, and where no binary loads. `node` is node:http for all. `sha256:CHECKSUM:/PATH` is a build of uWebSockets.js that you brought, for this platform and version of Node.js; with another checksum the process ends with code 2. See docs/dependencies.md, Other platforms, which has the price of node:http, too.',
    unit: '',
    type: 'text',
    secret: false,
    range: RANGE,
    fallback: () => 'uws',
    fallbackText: 'uws',
    parse: (text) => {
      if (text === 'uws' || text === 'node') return text;
      const [, expected = '', path = ''] = OWN_BUILD.exec(text) ?? [];
      if (path === '') {
        throw problem(
          `must be one of ${RANGE}: 64 hexadecimal digits in small letters, and an absolute path`,
        );
      }
      const actual = checksumOf(path);
      if (actual !== expected) throw problem(`${path} has SHA-256 ${actual}, not ${expected}`);
      return `sha256:${expected}:${path}`;
    },
  };
}

function checksumOf(path: string): string {
  try {
    // Opening a pipe would block.
    if (statSync(path).isFile()) return checksumOfFile(path);
  } catch (error) {
    throw problem(error instanceof Error ? error.message : String(error));
  }
  throw problem(`${path} is no regular file`);
}

function problem(text: string): AppError {
  return new AppError<SharedReason>('CONFIG_INVALID', text);
}
