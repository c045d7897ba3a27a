import { AppError } from '../../shared/app-error.ts';
import type { SealedValues, ValueSealer } from '../model/ports.ts';

/** Of the secrets, and of the variables, that come with one start. */
const VALUES_MAX = 100;
const VALUE_BYTES_MAX = 48 * 1024;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = /^(?:GITHUB|RUNNER|ACTIONS)_/;
/** The one reserved name that people give: what a host would put in. */
const TOKEN = 'GITHUB_TOKEN';

type GivenValues = Readonly<Record<string, string>>;

/**
 * Secrets or variables of one run as they were given, by names in upper case.
 * Errors: INVALID_NAME, INVALID_VALUE; never with a value.
 */
export function checkedValues(
  field: 'secrets' | 'variables',
  given: GivenValues | undefined,
): GivenValues {
  const entries = Object.entries(given ?? {});
  if (entries.length > VALUES_MAX) {
    throw new AppError('INVALID_VALUE', `${field}: at most ${VALUES_MAX} come with a start`, {
      field,
    });
  }
  return Object.fromEntries(
    entries.map(([name, value]) => [checkedName(field, name), checkedValue(field, name, value)]),
  );
}

/**
 * The secrets of a start as its journal keeps them: sealed. Undefined where there are none.
 * Errors: those of checkedValues, BACKEND_UNAVAILABLE.
 */
export async function sealedSecrets(
  sealer: ValueSealer | undefined,
  runId: string,
  given: GivenValues | undefined,
): Promise<SealedValues | undefined> {
  const values = checkedValues('secrets', given);
  if (Object.keys(values).length === 0) return undefined;
  if (sealer === undefined) throw new AppError('BACKEND_UNAVAILABLE', 'no key for secrets here');
  return sealer.seal(contextOf(runId), JSON.stringify(values));
}

/** The secrets that came with the start of a run. Errors: BACKEND_UNAVAILABLE when the key is another one. */
export async function openedSecrets(
  sealer: ValueSealer | undefined,
  runId: string,
  sealed: SealedValues | undefined,
): Promise<GivenValues> {
  if (sealed === undefined) return {};
  if (sealer === undefined) throw new AppError('BACKEND_UNAVAILABLE', 'no key for secrets here');
  return JSON.parse(await sealer.open(contextOf(runId), sealed)) as GivenValues;
}

/** Those of `values` that `names`, in upper case, asks for; undefined: all. */
export function namedOf(values: GivenValues, names: readonly string[] | undefined): GivenValues {
  if (names === undefined) return values;
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));
}

function contextOf(runId: string): string {
  return `run-secrets:${runId}`;
}

function checkedName(field: string, given: string): string {
  const name = given.toUpperCase();
  if (!NAME.test(name) || (RESERVED.test(name) && name !== TOKEN)) {
    throw new AppError('INVALID_NAME', `${field}: '${given.slice(0, 100)}' is no name for one`, {
      field,
    });
  }
  return name;
}

function checkedValue(field: string, name: string, value: string): string {
  if (Buffer.byteLength(value) > VALUE_BYTES_MAX) {
    throw new AppError('INVALID_VALUE', `${field}: ${name} has more than 48 KiB`, { field });
  }
  return value;
}
