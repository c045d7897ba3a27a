import { parseConditions } from '../conditions/model-conditions.ts';
import {
  checkName,
  modelError,
  nameOf,
  objectOf,
  parseJson,
  refuseUnknown,
} from '../model-json.ts';
import { SEAT_NAMESPACE } from '../names.ts';
import { BUILT_IN_NAMESPACES, RESOURCE_NAMESPACE } from './built-in-model.ts';
import type { NamespaceModel, Rewrite, SubjectType } from './model-shape.ts';
import { BUILT_IN_SUBJECTS, parseSubjects } from './model-subjects.ts';

export const MODEL_NAMESPACES_MAX = 256;
export const MODEL_RELATIONS_MAX = 256;
export const MODEL_NESTING_MAX = 32;

const THIS: Rewrite = { op: 'this' };
const SCHEMA_VERSION = 1;
const REWRITES = ['this', 'computed', 'tuple_to_userset', 'union', 'intersection', 'exclusion'];

type Relations = ReadonlyMap<string, Rewrite>;
type Subjects = Map<string, Map<string, readonly SubjectType[]>>;

/**
 * Parses the document of a model and checks its form, not what its names refer to. The built-in `workspace` and `group`
 * are merged in unless the document defines them. A document without namespaces is the whole built-in model. Errors:
 * MODEL_INVALID, the first one found. Cost: O(document).
 */
export function readModelDocument(json: string): NamespaceModel {
  const root = objectOf(parseJson(json), '$');
  refuseUnknown(root, ['$schema', 'schema_version', 'conditions', 'namespaces'], '$');
  // Only editors use it.
  if (Object.hasOwn(root, '$schema') && typeof root['$schema'] !== 'string') {
    throw modelError('$.$schema', 'must be a string');
  }
  if (Object.hasOwn(root, 'schema_version') && root['schema_version'] !== SCHEMA_VERSION) {
    throw modelError('$.schema_version', 'must be 1');
  }
  if (!Object.hasOwn(root, 'namespaces')) throw modelError('$.namespaces', 'is required');
  const documents = objectOf(root['namespaces'], '$.namespaces');
  const names = Object.keys(documents);
  if (names.length > MODEL_NAMESPACES_MAX) {
    throw modelError('$.namespaces', `holds more than ${MODEL_NAMESPACES_MAX} namespaces`);
  }
  const namespaces = new Map<string, Relations>();
  const open = new Set<string>();
  const subjects: Subjects = new Map();
  for (const name of names) {
    const path = `$.namespaces.${name}`;
    checkName(name, path);
    if (name === SEAT_NAMESPACE) throw modelError(path, 'the namespace seat is reserved');
    const ofNamespace = new Map<string, readonly SubjectType[]>();
    const { relations, isOpen } = parseNamespace(documents[name], path, ofNamespace);
    namespaces.set(name, relations);
    if (isOpen) open.add(name);
    if (ofNamespace.size > 0) subjects.set(name, ofNamespace);
  }
  for (const [name, relations] of BUILT_IN_NAMESPACES) {
    if (namespaces.has(name) || (names.length > 0 && name === RESOURCE_NAMESPACE)) continue;
    namespaces.set(name, relations);
    const ofBuiltIn = BUILT_IN_SUBJECTS.get(name);
    // In an untyped model, built-in namespaces have no subjects either.
    if (subjects.size > 0 && ofBuiltIn !== undefined) subjects.set(name, new Map(ofBuiltIn));
  }
  const conditions = Object.hasOwn(root, 'conditions')
    ? parseConditions(root['conditions'], '$.conditions')
    : new Map();
  return { namespaces, open, subjects, conditions };
}

function parseNamespace(
  value: unknown,
  path: string,
  subjects: Map<string, readonly SubjectType[]>,
): { readonly relations: Relations; readonly isOpen: boolean } {
  const document = objectOf(value, path);
  refuseUnknown(document, ['open', 'relations'], path);
  const open = Object.hasOwn(document, 'open') ? document['open'] : false;
  if (typeof open !== 'boolean') throw modelError(`${path}.open`, 'must be true or false');
  if (!Object.hasOwn(document, 'relations')) throw modelError(`${path}.relations`, 'is required');
  const documents = objectOf(document['relations'], `${path}.relations`);
  const names = Object.keys(documents);
  if (names.length > MODEL_RELATIONS_MAX) {
    throw modelError(`${path}.relations`, `holds more than ${MODEL_RELATIONS_MAX} relations`);
  }
  const relations = new Map<string, Rewrite>();
  for (const name of names) {
    const relationPath = `${path}.relations.${name}`;
    checkName(name, relationPath);
    const relation = objectOf(documents[name], relationPath);
    const { subjects: admitted, ...rewrite } = relation;
    if (Object.hasOwn(relation, 'subjects')) {
      subjects.set(name, parseSubjects(admitted, `${relationPath}.subjects`));
    }
    relations.set(name, parseRewrite(rewrite, relationPath, 1));
  }
  refuseComputedCycles(relations, path);
  return { relations, isOpen: open };
}

function parseRewrite(value: unknown, path: string, nesting: number): Rewrite {
  if (nesting > MODEL_NESTING_MAX) {
    throw modelError(path, `is nested more than ${MODEL_NESTING_MAX} deep`);
  }
  const document = objectOf(value, path);
  const members = Object.keys(document);
  const member = members[0];
  if (member === undefined) return THIS;
  refuseUnknown(document, nesting === 1 ? [...REWRITES, 'subjects'] : REWRITES, path);
  if (members.length > 1) throw modelError(path, `must have exactly one of ${REWRITES.join(', ')}`);
  const inner = document[member];
  const innerPath = `${path}.${member}`;
  switch (member) {
    case 'computed':
      return { op: 'computed', relation: nameOf(inner, innerPath) };
    case 'tuple_to_userset':
      return parseTupleToUserset(inner, innerPath);
    case 'union':
    case 'intersection':
      return { op: member, children: parseChildren(inner, innerPath, nesting) };
    case 'exclusion':
      return parseExclusion(inner, innerPath, nesting);
    default:
      refuseUnknown(objectOf(inner, innerPath), [], innerPath);
      return THIS;
  }
}

function parseTupleToUserset(value: unknown, path: string): Rewrite {
  const document = objectOf(value, path);
  refuseUnknown(document, ['tupleset', 'computed'], path);
  return {
    op: 'tupleToUserset',
    tupleset: nameOf(document['tupleset'], `${path}.tupleset`),
    computed: nameOf(document['computed'], `${path}.computed`),
  };
}

function parseExclusion(value: unknown, path: string, nesting: number): Rewrite {
  const document = objectOf(value, path);
  refuseUnknown(document, ['include', 'exclude'], path);
  return {
    op: 'exclusion',
    include: parseRewrite(document['include'], `${path}.include`, nesting + 1),
    exclude: parseRewrite(document['exclude'], `${path}.exclude`, nesting + 1),
  };
}

function parseChildren(value: unknown, path: string, nesting: number): readonly Rewrite[] {
  if (!Array.isArray(value)) throw modelError(path, 'must be a list');
  if (value.length === 0) throw modelError(path, 'must not be empty');
  return value.map((child, index) => parseRewrite(child, `${path}[${index}]`, nesting + 1));
}

/** Maximum number of relations shown at the start, and at the end, of a cycle. */
const ROUND_SHOWN_MAX = 8;

/**
 * Rejects relations of one object that are computed from themselves, through any operator. The error shows the cycle.
 */
function refuseComputedCycles(relations: Relations, path: string): void {
  const finished = new Set<string>();
  const onPath = new Set<string>();
  const visit = (name: string): void => {
    if (finished.has(name)) return;
    if (onPath.has(name)) {
      const way = [...onPath];
      const round = roundText([...way.slice(way.indexOf(name)), name]);
      throw modelError(`${path}.relations.${name}`, `is computed from itself: ${round}`);
    }
    onPath.add(name);
    for (const next of computedOf(relations.get(name) ?? THIS)) visit(next);
    onPath.delete(name);
    finished.add(name);
  };
  for (const name of relations.keys()) visit(name);
}

/**
 * Formats a cycle as `viewer → editor → viewer`. A long one shows its two ends, and the number of relations between
 * them.
 */
function roundText(names: readonly string[]): string {
  const between = names.length - 2 * ROUND_SHOWN_MAX;
  if (between <= 1) return names.join(' → ');
  const [head, tail] = [names.slice(0, ROUND_SHOWN_MAX), names.slice(-ROUND_SHOWN_MAX)];
  return [...head, `(${between} more)`, ...tail].join(' → ');
}

function computedOf(rewrite: Rewrite): readonly string[] {
  switch (rewrite.op) {
    case 'this':
    case 'tupleToUserset':
      return [];
    case 'computed':
      return [rewrite.relation];
    case 'union':
    case 'intersection':
      return rewrite.children.flatMap(computedOf);
    case 'exclusion':
      return [...computedOf(rewrite.include), ...computedOf(rewrite.exclude)];
  }
}
