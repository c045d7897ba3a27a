import {
  membersOf,
  optionalList,
  optionalMembers,
  optionalString,
  shapeError,
  stringOf,
} from '../peers/json-shape.ts';
import type { PeerCheck, PeerRemark, PeerSuite, PeerTuple } from '../peers/peer-model.ts';
import { readYaml } from '../peers/read-yaml.ts';
import { assertionOf, relationshipOf } from './relationship-text.ts';

/** Reads a file that a validation file names. Errors: those of the caller's file system. */
export type ReadNamed = (path: string) => string;

export type ValidationFile = {
  readonly schema:
    | { readonly kind: 'text'; readonly text: string }
    | { readonly kind: 'file'; readonly path: string };
  readonly suite: PeerSuite;
};

/** Matches the name of a file: a single word without a relation. */
const PATH = /^[^\s#@]+$/;
/** Matches `[user:tom] is <doc:1#viewer>`; only the subject in the brackets is kept. */
const EXPECTED = /^\s*\[([^[\s\]]+)(\[\.\.\.\])?(\s*-\s*\{.*\})?\]\s+is\s+/;

/**
 * Reads a validation file of SpiceDB: the place of its schema, its relationships, its assertions,
 * and the subjects of `validation`. Each of these subjects becomes a check. A check that SpiceDB
 * leaves to a caveat without its values is denied here, so a denial is expected.
 *
 * Relationships of another file (`relationshipsFile`, or its name as `relationships`) follow the
 * file's own. Errors: FIELD_INVALID naming the place; those of `readNamed`. O(size).
 */
export function readValidationFile(text: string, readNamed: ReadNamed): ValidationFile {
  const root = membersOf(readYaml(text, 'the validation file'), 'the validation file');
  const schemaText = optionalString(root['schema'], 'schema');
  const path = optionalString(root['schemaFile'], 'schemaFile');
  if (schemaText === undefined && path === undefined) {
    throw shapeError('the validation file', 'has neither schema nor schemaFile');
  }
  const relationships = optionalString(root['relationships'], 'relationships') ?? '';
  const isPath = PATH.test(relationships.trim());
  const named = optionalString(root['relationshipsFile'], 'relationshipsFile');
  const files = [
    ...(named === undefined ? [] : [named]),
    ...(isPath ? [relationships.trim()] : []),
  ];
  const tuples = [
    ...(isPath ? [] : relationshipsOf(relationships, 'relationships')),
    ...files.flatMap((file) => relationshipsOf(readNamed(file), file)),
  ];
  const assertions = optionalMembers(root['assertions'], 'assertions');
  const unsupported: PeerRemark[] = [];
  const checks = [
    ...checksOf(assertions, 'assertTrue', true),
    ...checksOf(assertions, 'assertCaveated', false),
    ...checksOf(assertions, 'assertFalse', false),
    ...expectedOf(optionalMembers(root['validation'], 'validation'), unsupported),
  ];
  const tests = [{ name: 'assertions', tuples: [], checks, lists: [] }];
  const schema: ValidationFile['schema'] =
    schemaText === undefined
      ? { kind: 'file', path: path ?? '' }
      : { kind: 'text', text: schemaText };
  return { schema, suite: { tuples, tests, unsupported } };
}

function relationshipsOf(text: string, place: string): readonly PeerTuple[] {
  // A folded text of YAML has spaces for line ends. Ids have none, and a context is all on one
  // line.
  return text.split('\n').flatMap((line, index) => {
    const relationship = line.trim();
    if (relationship === '' || relationship.startsWith('//')) return [];
    return [relationshipOf(relationship, `${place}, line ${index + 1}`)];
  });
}

function checksOf(
  assertions: ReturnType<typeof membersOf>,
  list: string,
  isAllowed: boolean,
): readonly PeerCheck[] {
  return optionalList(assertions[list], list).map((text, at) => {
    const place = `${list}[${at}]`;
    return assertionOf(stringOf(text, place), isAllowed, place);
  });
}

function expectedOf(
  validation: ReturnType<typeof membersOf>,
  unsupported: PeerRemark[],
): readonly PeerCheck[] {
  return Object.entries(validation).flatMap(([object, lines]) =>
    optionalList(lines, `validation, ${object}`).flatMap((line, at): readonly PeerCheck[] => {
      const place = `validation, ${object}, [${at}]`;
      const text = stringOf(line, place);
      const [isRead, subject = '', caveated, excluded] = EXPECTED.exec(text) ?? [];
      if (isRead === undefined || excluded !== undefined) {
        unsupported.push({ place, text: `${text} is no single subject` });
        return [];
      }
      return [assertionOf(`${object}@${subject}`, caveated === undefined, place)];
    }),
  );
}
