import { createZipf } from './random.ts';
import { World } from './world.ts';

/** "May this user view this document?", with the answer. */
export type Question = {
  readonly objectId: string;
  readonly userId: string;
  readonly allow: boolean;
};
type Pair = readonly [doc: number, user: number];
const at = <T>(list: readonly T[], i: number): T => list[i] as T;

const question = (world: World, doc: number, u: number): Question => ({
  objectId: World.docId(doc),
  userId: `u${u}`,
  allow: world.canView(doc, u),
});

const deniedUser = (world: World, doc: number, pick: () => number): number => {
  for (;;) {
    const u = pick();
    if (!world.canView(doc, u)) return u;
  }
};

const directPairs = (world: World): Pair[] =>
  world.docGrants.flatMap((grants, doc) =>
    grants.flatMap((g): Pair[] => (g.direct === true ? [[doc, g.user as number]] : [])),
  );

/** A document and a user who views it only through three to five parent hops and a nested group. */
function nestedPair(world: World, grants: readonly Pair[]): Pair {
  const { below } = world.random;
  for (;;) {
    const [folder, group] = at(grants, below(grants.length));
    if (world.levelOf(folder) > 2) continue;
    const docs = world
      .docsUnder(folder)
      .filter((doc) => world.levelOf(at(world.docFolder, doc)) - world.levelOf(folder) >= 2);
    const users = world.nestedUsers(group);
    if (docs.length === 0 || users.length === 0) continue;
    const [doc, u] = [at(docs, below(docs.length)), at(users, below(users.length))];
    if (world.isGranted(at(world.docGrants, doc), u)) continue;
    if (!world.isMember(world.workspaceOf(at(world.docFolder, doc)), u)) return [doc, u];
  }
}

/**
 * `count` questions: a quarter direct grants, a quarter deep nested ones, half denied; uniform, or
 * Zipf 0.99 over grants, documents and users. Deterministic for a world's seed and earlier calls.
 */
export function mixedQuestions(
  world: World,
  count: number,
  spread: 'uniform' | 'zipf',
): Question[] {
  const pairs = directPairs(world);
  const groupGrants = world.folderGrants.flatMap((grants, folder) =>
    grants.flatMap((g): Pair[] => (g.group === undefined ? [] : [[folder, g.group]])),
  );
  const pool = Array.from({ length: Math.min(20_000, count) }, () =>
    nestedPair(world, groupGrants),
  );
  const pick = (n: number): (() => number) =>
    spread === 'zipf' ? createZipf(world.random, n) : () => world.random.below(n);
  const pickDirect = pick(pairs.length);
  const pickNested = pick(pool.length);
  const pickDoc = pick(world.docFolder.length);
  const pickUser = pick(world.users);
  return Array.from({ length: count }, (_, i) => {
    if (i % 2 === 0)
      return question(world, ...(i % 4 === 0 ? at(pairs, pickDirect()) : at(pool, pickNested())));
    const doc = pickDoc();
    return question(world, doc, deniedUser(world, doc, pickUser));
  });
}
