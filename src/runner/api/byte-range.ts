import { AppError } from '../../shared/app-error.ts';

/** Inclusive positions of the bytes that are asked for. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * The range that a Range header asks of `size` bytes; undefined for the whole: without a header, for
 * another unit, for several ranges and for what cannot be read, as RFC 9110 §14.2 allows.
 * Errors: RANGE_NOT_SATISFIABLE when it begins behind the end.
 */
export function rangeOf(header: string, size: number): ByteRange | undefined {
  const parts = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header);
  if (parts === null) return undefined;
  const [, first = '', last = ''] = parts;
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const length = Math.min(Number(last), size);
    if (length === 0) throw notSatisfiable(size);
    return { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) throw notSatisfiable(size);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return { start, end };
}

function notSatisfiable(size: number): AppError {
  return new AppError('RANGE_NOT_SATISFIABLE', `the artifact has ${size} bytes`, {
    size: String(size),
  });
}
