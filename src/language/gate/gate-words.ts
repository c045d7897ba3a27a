/** Reserved words: a relation, namespace or condition with such a name is quoted. */
export const RESERVED: ReadonlySet<string> = new Set([
  'and',
  'but',
  'closed',
  'condition',
  'expiration',
  'from',
  'namespace',
  'not',
  'open',
  'or',
  'relation',
  'schema',
  'this',
  'with',
  'without',
]);

/** Words of other languages, with a hint at the form to use here. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['type', 'a type is a namespace here: namespace document { … }'],
  ['definition', 'a definition is a namespace here: namespace document { … }'],
  ['entity', 'an entity is a namespace here: namespace document { … }'],
  ['define', 'a relation begins with "relation": relation viewer: [user] or editor'],
  ['permission', 'a permission is a relation without subjects: relation view: viewer or editor'],
  ['caveat', 'a caveat is a condition here: condition name(a: int) { a < 5 }'],
  ['model', 'there is no header but "schema 1"'],
  ['relations', 'relations stand in the braces of their namespace'],
  ['extend', 'a namespace stands in one place'],
  ['+', 'a union is written with "or"'],
  ['|', 'subjects are a list, [user, group#member]; a union is written with "or"'],
  ['&', 'an intersection is written with "and"'],
  ['-', 'an exclusion is written with "but not"'],
  ['->', 'relations of related objects are written as "viewer from parent"'],
  ['=', 'a rule follows a colon: relation view: viewer or editor'],
  ['.', 'relations of related objects are written as "viewer from parent"'],
  ['#', 'a comment begins with //'],
  ['/*', 'a comment begins with // and ends with its line'],
  [';', 'nothing stands between statements'],
  ["'", 'quotes are double'],
]);

/** A hint for a token that is not allowed at its place. */
export function hintFor(found: string, otherwise = ''): string {
  return HINTS.get(found) ?? otherwise;
}
