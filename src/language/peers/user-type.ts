import type { PeerModel, PeerSubjectType } from './peer-model.ts';

/**
 * The peer's type whose objects are users here: the one that is asked for ('none': none is), or else the
 * one called `user` (as `org/user` is, too, if there is one such), the only one with a wildcard, or the
 * only one without relations that is a subject. Undefined: every subject is an object.
 */
export function userTypeOf(model: PeerModel, asked: string | undefined): string | undefined {
  if (asked !== undefined) return asked === 'none' ? undefined : asked;
  const names = model.types.map(({ name }) => name);
  const subjects = model.types.flatMap(({ relations }) =>
    relations.flatMap((relation) => relation.subjects),
  );
  const typesOf = (isMeant: (subject: PeerSubjectType) => boolean): readonly string[] => [
    ...new Set(subjects.filter(isMeant).map(({ type }) => type)),
  ];
  const bare = model.types.filter(({ relations }) => relations.length === 0);
  const isBare = (type: string): boolean => bare.some(({ name }) => name === type);
  const candidates = [
    names.filter((name) => name === 'user'),
    names.filter((name) => name.endsWith('/user')),
    typesOf(({ relation }) => relation === '*'),
    typesOf(({ type, relation }) => relation === '' && isBare(type)),
  ];
  return candidates.find(({ length }) => length === 1)?.[0];
}
