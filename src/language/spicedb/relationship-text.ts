import { assertExact, parseExactJson } from '../peers/exact-numbers.ts';
import { shapeError } from '../peers/json-shape.ts';
import type { PeerCheck, PeerReference, PeerTuple } from '../peers/peer-model.ts';

const NAME = '[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*';
const OBJECT = `(${NAME}):([^\\s:#@[\\]]+)`;
const RELATIONSHIP = new RegExp(`^${OBJECT}#(${NAME})@${OBJECT}(?:#(\\.\\.\\.|${NAME}))?(\\[.*)?$`);
const TRAITS = new RegExp(
  `^(?:\\[(?!expiration:)(${NAME})(?::(\\{.*\\}))?\\])?(?:\\[expiration:([^\\]]+)\\])?$`,
);

/**
 * A relationship as SpiceDB writes it,
 * `doc:1#viewer@user:tom[caveat:{"a":1}][expiration:2030-01-01T00:00:00Z]`.
 * Errors: FIELD_INVALID naming `place`.
 */
export function relationshipOf(text: string, place: string): PeerTuple {
  const refused = (): Error => shapeError(place, `${JSON.stringify(text)} is no relationship`);
  const found = RELATIONSHIP.exec(text);
  if (found === null) throw refused();
  const [, type = '', id = '', relation = '', subjectType = '', subjectId = ''] = found;
  const [subjectRelation = '', traits = ''] = found.slice(6);
  const [isRead, condition, contextJson, expiresAt] = TRAITS.exec(traits) ?? [];
  if (isRead === undefined) throw refused();
  const subject: PeerReference = {
    type: subjectType,
    id: subjectId,
    relation: subjectRelation === '...' ? '' : subjectRelation,
  };
  const object = { type, id, relation: '' };
  const context = contextJson === undefined ? undefined : jsonOf(contextJson, place);
  return { object, relation, subject, condition, context, expiresAt, place };
}

/** A check with its expected answer: `doc:1#view@user:tom with {"a":1}`. Errors as above. */
export function assertionOf(text: string, isAllowed: boolean, place: string): PeerCheck {
  const [relationship = '', contextJson] = text.trim().split(/\s+with\s+(.*)/s);
  const { object, relation, subject, condition } = relationshipOf(relationship, place);
  if (condition !== undefined)
    throw shapeError(place, 'an assertion has its context behind "with"');
  const context = contextJson === undefined ? undefined : jsonOf(contextJson, place);
  return { object, relation, subject, context, isAllowed, place };
}

function jsonOf(text: string, place: string): unknown {
  try {
    const context = parseExactJson(text);
    assertExact(context, `${place}, context`);
    return context;
  } catch (error) {
    if (error instanceof SyntaxError) throw shapeError(place, `${text} is no JSON`);
    if (error instanceof RangeError) throw shapeError(place, 'the context is nested too deeply');
    throw error;
  }
}
