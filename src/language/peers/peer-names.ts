import { BUILT_IN_CONDITIONS } from '../../model/conditions/conditions.ts';
import { SEAT_NAMESPACE } from '../../model/names.ts';
import type { PeerModel, PeerRemark } from './peer-model.ts';

const NAME_LENGTH_MAX = 64;
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const USER = 'user';

/** The names here of the peer's names. */
export type PeerNames = {
  readonly namespaces: ReadonlyMap<string, string>;
  readonly relations: ReadonlyMap<string, string>;
  readonly conditions: ReadonlyMap<string, string>;
  readonly problems: readonly PeerRemark[];
  readonly notes: readonly PeerRemark[];
};

/**
 * Gives every name of a peer a valid name of a model. It becomes lower case, with `_` for invalid
 * characters and appended to names that the service uses. The same name always becomes the same.
 * Two names that would become one are a problem. `taken` are namespaces that the model cannot
 * define freely. O(names).
 */
export function namesOfPeer(
  model: PeerModel,
  userType: string | undefined,
  taken: ReadonlySet<string>,
): PeerNames {
  const problems: PeerRemark[] = [];
  const notes: PeerRemark[] = [];
  const rename = (
    kind: string,
    names: Iterable<readonly [name: string, place: string]>,
    isTaken: (renamed: string, name: string) => boolean,
  ): ReadonlyMap<string, string> => {
    const renamed = new Map<string, string>();
    const owners = new Map<string, string>();
    for (const [name, place] of names) {
      if (renamed.has(name)) continue;
      let own = wellFormed(name);
      while (isTaken(own, name)) own = `${own.slice(0, NAME_LENGTH_MAX - 1)}_`;
      const owner = owners.get(own);
      if (owner !== undefined) {
        problems.push({
          place,
          text: `the ${kind}s ${owner} and ${name} would both become ${own}`,
        });
      }
      owners.set(own, name);
      renamed.set(name, own);
      if (own !== name) notes.push({ place, text: `the ${kind} ${name} is called ${own}` });
    }
    return renamed;
  };
  // Users without relations have no namespace; `user:x` is always a user, never an object.
  const types = model.types
    .filter(({ name, relations }) => name !== userType || relations.length > 0)
    .map(({ name, place }) => [name, place] as const);
  const relations = model.types.flatMap((type) =>
    type.relations.map(({ name, place }) => [name, place] as const),
  );
  const conditions = model.conditions.map(({ name, place }) => [name, place] as const);
  return {
    namespaces: rename(
      'type',
      types,
      (own) => own === SEAT_NAMESPACE || own === USER || taken.has(own),
    ),
    relations: rename('relation', relations, () => false),
    conditions: rename('condition', conditions, (own) => BUILT_IN_CONDITIONS.has(own)),
    problems,
    notes,
  };
}

function wellFormed(name: string): string {
  if (NAME.test(name)) return name;
  const replaced = name.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '_');
  const started = /^[a-z]/.test(replaced) ? replaced : `n${replaced}`;
  return started.slice(0, NAME_LENGTH_MAX);
}
