import { AppError } from '../../../shared/app-error.ts';
import { inputOf } from '../steps/step-input.ts';
import type { BuiltInCall } from './built-in-call.ts';

/** What of `with:` of actions/checkout counts here. */
export type CheckoutInputs = {
  readonly ref: string;
  /** '' for the workspace. */
  readonly path: string;
  /** 0: all of the history. */
  readonly depth: number;
  readonly hasTags: boolean;
  readonly submodules: 'none' | 'direct' | 'recursive';
  readonly hasLfs: boolean;
  readonly isClean: boolean;
};

/** Defaults: action.yml of actions/checkout, version 4 to 6. Errors: INVALID_VALUE with the input's name. */
export function checkoutInputs({ given }: Pick<BuiltInCall, 'given'>): CheckoutInputs {
  const depth = inputOf(given, 'fetch-depth', '1');
  if (!/^\d{1,9}$/.test(depth)) throw invalid('fetch-depth', `'${depth}' is no number`);
  const submodules = inputOf(given, 'submodules', 'false').toLowerCase();
  return {
    ref: inputOf(given, 'ref'),
    path: inputOf(given, 'path'),
    depth: Number(depth),
    hasTags: flag(given, 'fetch-tags', false),
    submodules:
      submodules === 'recursive'
        ? 'recursive'
        : flag(given, 'submodules', false)
          ? 'direct'
          : 'none',
    hasLfs: flag(given, 'lfs', false),
    isClean: flag(given, 'clean', true),
  };
}

/**
 * Refuses what a job of a fork does not get: its folder has the commit of its run alone.
 * Errors: INVALID_VALUE.
 */
export function refuseForFork(
  inputs: CheckoutInputs,
  isWorkspace: boolean,
  isOwnRef: boolean,
): void {
  const { depth, hasTags, submodules, hasLfs } = inputs;
  const asked: readonly (readonly [field: string, isAsked: boolean])[] = [
    ['path', !isWorkspace],
    ['ref', !isOwnRef],
    ['fetch-depth', depth !== 1],
    ['fetch-tags', hasTags],
    ['submodules', submodules !== 'none'],
    ['lfs', hasLfs],
  ];
  const field = asked.find(([, isAsked]) => isAsked)?.[0];
  if (field === undefined) return;
  throw invalid(field, 'a job of a fork has the commit of its run alone, without history');
}

function flag(given: BuiltInCall['given'], name: string, fallback: boolean): boolean {
  const text = inputOf(given, name, String(fallback)).toLowerCase();
  if (text === 'true' || text === 'false') return text === 'true';
  throw invalid(name, `'${text}' is neither true nor false`);
}

function invalid(field: string, text: string): AppError {
  return new AppError('INVALID_VALUE', `${field}: ${text}`, { field });
}

/** Why `repository` of a checkout is refused in the project `own`; undefined for its own name, or none. */
export function refusalOfRepository(wanted: string, own: string): string | undefined {
  if (wanted === '' || wanted.toLowerCase() === own.toLowerCase()) return undefined;
  const text = `'${wanted}' cannot be checked out: without network there is only the project's own repository`;
  return `${text}${own === '' ? '' : `, '${own}'`}`;
}
