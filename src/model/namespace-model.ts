import { AppError } from '../shared/app-error.ts';
import { BUILT_IN_NAMESPACES, RESOURCE_NAMESPACE } from './built-in-model.ts';
import { findDuplicateKey } from './duplicate-key.ts';
import type { ModelReason } from './model-reason.ts';
import type { Rewrite } from './rewrite.ts';

/** Namespace → relation → rewrite. What is not listed is this(): plain stored tuples. */
export type NamespaceModel = {
  readonly namespaces: ReadonlyMap<string, ReadonlyMap<string, Rewrite>>;
};

export const MODEL_NAMESPACES_MAX = 256;
export const MODEL_RELATIONS_MAX = 256;
export const MODEL_NESTING_MAX = 32;
/** Four objects hold a rewrite, and each level of one is an object with a list or object in it. */
const MODEL_DEPTH_MAX = 4 + 2 * MODEL_NESTING_MAX;
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const THIS: Rewrite = { op: 'this' };
const SCHEMA_VERSION = 1;

type JsonObject = { readonly [key: string]: unknown };

/**
 * The model of a project's `model_json`; '' is the built-in model. The built-in `workspace` and
 * `group` are merged in unless the document defines them; no namespaces at all is the whole
 * built-in model.
 * Errors: MODEL_INVALID, whose message and metadata.path name the JSON path. Cost: O(document).
 */
export function parseModel(json: string): NamespaceModel {
  if (json === '') return builtInModel();
  const root = objectOf(parseJson(json), '$');
  refuseUnknown(root, ['schema_version', 'namespaces'], '$');
  if (Object.hasOwn(root, 'schema_version') && root['schema_version'] !== SCHEMA_VERSION) {
    throw modelError('$.schema_version', 'must be 1');
  }
  if (!Object.hasOwn(root, 'namespaces')) throw modelError('$.namespaces', 'is required');
  const documents = objectOf(root['namespaces'], '$.namespaces');
  const names = Object.keys(documents);
  if (names.length === 0) return builtInModel();
  if (names.length > MODEL_NAMESPACES_MAX) {
    throw modelError('$.namespaces', `holds more than ${MODEL_NAMESPACES_MAX} namespaces`);
  }
  const namespaces = new Map<string, ReadonlyMap<string, Rewrite>>();
  for (const name of names) {
    const path = `$.namespaces.${name}`;
    checkName(name, path);
    if (name === 'seat') throw modelError(path, 'the namespace seat is reserved');
    namespaces.set(name, parseNamespace(documents[name], path));
  }
  for (const [name, relations] of BUILT_IN_NAMESPACES) {
    if (name !== RESOURCE_NAMESPACE && !namespaces.has(name)) namespaces.set(name, relations);
  }
  return { namespaces };
}

/**
 * Refuses a document that must not be stored: one that `parseModel` refuses, or that names a key of an
 * object twice, of which all but the last would be lost without a word. One that was stored before
 * still loads, so that `parseModel` itself takes it.
 * Errors: MODEL_INVALID, as `parseModel`. Cost: O(document).
 */
export function checkModelDocument(json: string): void {
  parseModel(json);
  const duplicate = findDuplicateKey(json, MODEL_DEPTH_MAX);
  if (duplicate === undefined) return;
  throw modelError(duplicate.path, `duplicate key "${duplicate.key}"`);
}

/** The model of a project without `model_json`. */
export function builtInModel(): NamespaceModel {
  return { namespaces: BUILT_IN_NAMESPACES };
}

function parseNamespace(value: unknown, path: string): ReadonlyMap<string, Rewrite> {
  const document = objectOf(value, path);
  refuseUnknown(document, ['relations'], path);
  if (!Object.hasOwn(document, 'relations')) throw modelError(`${path}.relations`, 'is required');
  const documents = objectOf(document['relations'], `${path}.relations`);
  const names = Object.keys(documents);
  if (names.length > MODEL_RELATIONS_MAX) {
    throw modelError(`${path}.relations`, `holds more than ${MODEL_RELATIONS_MAX} relations`);
  }
  const relations = new Map<string, Rewrite>();
  for (const name of names) {
    checkName(name, `${path}.relations.${name}`);
    relations.set(name, parseRewrite(documents[name], `${path}.relations.${name}`, 1));
  }
  refuseComputedCycles(relations, path);
  return relations;
}

function parseRewrite(value: unknown, path: string, nesting: number): Rewrite {
  if (nesting > MODEL_NESTING_MAX) {
    throw modelError(path, `is nested more than ${MODEL_NESTING_MAX} deep`);
  }
  const document = objectOf(value, path);
  const members = Object.keys(document);
  const member = members[0];
  if (member === undefined) return THIS;
  if (members.length > 1) throw modelError(path, 'must have exactly one member');
  const inner = document[member];
  const innerPath = `${path}.${member}`;
  switch (member) {
    case 'this':
      refuseUnknown(objectOf(inner, innerPath), [], innerPath);
      return THIS;
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
      throw modelError(innerPath, 'is not a known member');
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

/** Refuses relations of one object that are computed from themselves, through any operator. */
function refuseComputedCycles(relations: ReadonlyMap<string, Rewrite>, path: string): void {
  const finished = new Set<string>();
  const onPath = new Set<string>();
  const visit = (name: string): void => {
    if (finished.has(name)) return;
    if (onPath.has(name)) {
      throw modelError(`${path}.relations.${name}`, 'is computed from itself');
    }
    onPath.add(name);
    for (const next of computedOf(relations.get(name) ?? THIS)) visit(next);
    onPath.delete(name);
    finished.add(name);
  };
  for (const name of relations.keys()) visit(name);
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

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new AppError<ModelReason>(
      'MODEL_INVALID',
      'model_json: $: is not valid JSON',
      { field: 'model_json', path: '$' },
      error,
    );
  }
}

function objectOf(value: unknown, path: string): JsonObject {
  if (value === undefined) throw modelError(path, 'is required');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw modelError(path, 'must be an object');
  }
  return value as JsonObject;
}

function nameOf(value: unknown, path: string): string {
  if (value === undefined) throw modelError(path, 'is required');
  if (typeof value !== 'string') throw modelError(path, 'must be a string');
  checkName(value, path);
  return value;
}

function checkName(name: string, path: string): void {
  if (!NAME.test(name)) throw modelError(path, 'the name must match [a-z][a-z0-9_-]{0,63}');
}

function refuseUnknown(document: JsonObject, known: readonly string[], path: string): void {
  for (const member of Object.keys(document)) {
    if (!known.includes(member)) throw modelError(`${path}.${member}`, 'is not a known member');
  }
}

function modelError(path: string, problem: string): AppError {
  return new AppError<ModelReason>('MODEL_INVALID', `model_json: ${path}: ${problem}`, {
    field: 'model_json',
    path,
  });
}
