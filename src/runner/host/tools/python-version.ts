import { AppError } from '../../../shared/app-error.ts';
import {
  newestWish,
  prereleaseOf,
  pythonRange,
  type VersionWish,
  wishFor,
} from './tool-version.ts';

const FIELD = 'python-version';

/**
 * What `python-version` asks for: `3.12`, `3.12.1`, `3.x`, `3.13-dev`, `3.13.0rc1`, a range of semver or of
 * PEP 440. Errors: INVALID_VALUE, for PyPy, GraalPy and free-threaded builds as well: CPython is all that
 * is found or installed.
 */
export function pythonWish(text: string, mayBePrerelease = false): VersionWish {
  const wanted = text.trim();
  if (/^(?:pypy|graalpy)/i.test(wanted) || /^\d+\.\d+(?:\.\d+)?t(?:-dev)?$/.test(wanted)) {
    const message = `Python '${text}' cannot be had: only CPython with its usual build is`;
    throw new AppError('INVALID_VALUE', message, { field: FIELD });
  }
  if (wanted === '*' || wanted === 'latest') return newestWish(text);
  const dev = /^(\d+\.\d+)-dev$/.exec(wanted)?.[1];
  if (dev !== undefined) return wishFor(text, `~${dev}.0-0`, FIELD);
  if (/[,!]|~=|==/.test(wanted)) {
    const { range, excluded } = pythonRange(wanted);
    return { ...wishFor(text, range, FIELD), excluded };
  }
  // The versions before the first release count as the line's own then.
  const line = mayBePrerelease && /^\d+\.\d+$/.test(wanted) ? `~${wanted}.0-0` : wanted;
  const wish = wishFor(text, prereleaseOf(line), FIELD);
  return mayBePrerelease ? { ...wish, mayBePrerelease } : wish;
}
