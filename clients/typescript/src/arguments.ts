import { GatehouseError } from './errors.ts';

/** The error for an argument that is not sent, as the service says it of one that is. `field` is its path. */
export function fieldInvalid(field: string, problem: string): GatehouseError {
  const details = { reason: 'FIELD_INVALID', metadata: { field } } as const;
  return new GatehouseError('invalid_argument', `${field}: ${problem}`, details);
}

/** Refuses a member that nothing would send: a grant without its condition is another grant. Errors: GatehouseError. */
export function refuseUnknown(field: string, value: object, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null) throw fieldInvalid(field, 'must be an object');
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw fieldInvalid(`${field}.${unknown}`, 'is not known');
}

/** Refuses what is no text. Errors: GatehouseError. */
export function checkText(field: string, value: unknown): void {
  if (typeof value !== 'string') throw fieldInvalid(field, 'must be a string');
}
