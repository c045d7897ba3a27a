const SPECIAL = /["\\]/;
const SPECIALS = /["\\]/g;

/** Elements above which joining all of them at once is quicker than one by one. */
const MANY = 64;

/** Literal of a text[]. Hot: one test per element where nothing needs escaping, one for all of them where they are many. */
export function textArray(values: readonly (string | null)[]): string {
  if (values.length > MANY && !values.includes(null) && !SPECIAL.test(values.join(''))) {
    return `{"${values.join('","')}"}`;
  }
  let text = '{';
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string | null;
    if (i !== 0) text += ',';
    if (value === null) text += 'NULL';
    else text += SPECIAL.test(value) ? `"${value.replace(SPECIALS, '\\$&')}"` : `"${value}"`;
  }
  return `${text}}`;
}

/** Literal of an array of numbers, booleans (t, f), uuids or numerals. */
export function plainArray(values: readonly (string | number | null)[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i++) {
    if (i !== 0) text += ',';
    text += values[i] ?? 'NULL';
  }
  return `${text}}`;
}
