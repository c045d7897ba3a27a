import { type Random, createRandom } from './random.ts';

/** A tuple whose subject is written `user:ID`, `group:ID#member` or an object (`folder:ID`). */
export type NeutralTuple = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: string;
};

type Grant = { readonly user?: number; readonly group?: number; readonly direct?: boolean };

const LEVELS = 5;
/** 11 groups a workspace, 4 levels deep: the parent of each. */
const GROUP_PARENT = [-1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6];
/** 2 + 4 + 8 + 16 + 32: two binary trees of five levels. */
const FOLDERS = 62;
const DOCS = 250;
const DOC_LEVEL_WEIGHTS = [0.05, 0.1, 0.2, 0.25, 0.4];
const at = <T>(list: readonly T[], i: number): T => list[i] as T;

/**
 * A company's documents: workspaces with members, nested groups, folder trees and documents, some
 * shared across workspaces. Scale 1 is about 101,000 tuples, 10 about 1,008,000. Answers come from
 * `canView`, which walks plain arrays and shares nothing with the engine.
 */
export class World {
  readonly random: Random;
  readonly workspaces: number;
  readonly users: number;
  readonly tuples: NeutralTuple[] = [];
  readonly docFolder: number[] = [];
  readonly docGrants: Grant[][] = [];
  readonly folderGrants: Grant[][] = [];
  readonly groupUsers: Set<number>[] = [];
  readonly #groupParents: number[][] = [];
  readonly #members: { users: Set<number>; groups: number[] }[] = [];
  readonly #directGroups: number[][];
  readonly #memberships = new Map<number, Map<number, number>>();

  constructor(scale: number, seed: number) {
    this.random = createRandom(seed);
    this.workspaces = Math.round(100 * scale);
    this.users = this.workspaces * 10;
    for (let w = 0; w < this.workspaces; w++) {
      this.#makeGroups(w);
      this.#makeMembers(w);
      this.#makeFolders(w);
      for (let n = 0; n < DOCS; n++) this.#makeDoc(w, w * DOCS + n);
    }
    this.#directGroups = Array.from({ length: this.users }, () => []);
    this.groupUsers.forEach((users, g) => users.forEach((u) => at(this.#directGroups, u).push(g)));
  }

  static user = (u: number): string => `user:u${u}`;
  static docId = (n: number): string => `d${Math.floor(n / DOCS)}_${n % DOCS}`;
  static #groupId = (g: number): string => `g${Math.floor(g / 11)}_${g % 11}`;
  static #folderId = (f: number): string => `f${Math.floor(f / FOLDERS)}_${f % FOLDERS}`;
  static #groupSubject = (g: number): string => `group:${World.#groupId(g)}#member`;

  #put(namespace: string, objectId: string, relation: string, subject: string): void {
    this.tuples.push({ namespace, object_id: objectId, relation, subject });
  }

  #makeGroups(w: number): void {
    for (let g = 0; g < 11; g++) {
      const group = w * 11 + g;
      const users = new Set<number>();
      const parent = at(GROUP_PARENT, g);
      this.#groupParents[group] = parent < 0 ? [] : [w * 11 + parent];
      this.groupUsers[group] = users;
      if (parent >= 0) {
        this.#put('group', World.#groupId(w * 11 + parent), 'member', World.#groupSubject(group));
      }
      // People of this and the next three workspaces.
      while (users.size < 5) users.add((w * 10 + this.random.below(40)) % this.users);
      for (const u of users) this.#put('group', World.#groupId(group), 'member', World.user(u));
    }
  }

  #makeMembers(w: number): void {
    const home = w * 10;
    const id = `w${w}`;
    this.#put('workspace', id, 'owner', World.user(home));
    this.#put('workspace', id, 'admin', World.user(home + 1));
    this.#put('workspace', id, 'member', World.#groupSubject(w * 11 + 7));
    for (let i = 2; i < 5; i++) this.#put('workspace', id, 'member', World.user(home + i));
    for (let i = 0; i < 2; i++) {
      this.#put('workspace', id, 'guest', World.user((home + 10 + i) % this.users));
    }
    const users = new Set([0, 1, 2, 3, 4].map((i) => home + i));
    this.#members[w] = { users, groups: [w * 11 + 7] };
  }

  #makeFolders(w: number): void {
    for (let f = 0; f < FOLDERS; f++) {
      const folder = w * FOLDERS + f;
      const up = this.parentFolder(folder);
      const parent = up < 0 ? `workspace:w${w}` : `folder:${World.#folderId(up)}`;
      this.#put('folder', World.#folderId(folder), 'parent', parent);
      const owner = w * 10 + this.random.below(10);
      this.#put('folder', World.#folderId(folder), 'owner', World.user(owner));
      const grants: Grant[] = [{ user: owner }];
      this.folderGrants[folder] = grants;
      if (this.random.next() < 0.3) {
        // Shared with a group of some other workspace that has groups under it.
        const group = this.random.below(this.workspaces) * 11 + this.random.below(7);
        const relation = this.random.next() < 0.8 ? 'viewer' : 'editor';
        this.#put('folder', World.#folderId(folder), relation, World.#groupSubject(group));
        grants.push({ group });
      }
    }
  }

  #makeDoc(w: number, doc: number): void {
    const { random } = this;
    let level = 0;
    for (let r = random.next(); level < LEVELS - 1 && r >= at(DOC_LEVEL_WEIGHTS, level); level++) {
      r -= at(DOC_LEVEL_WEIGHTS, level);
    }
    const folder = w * FOLDERS + (2 ** (level + 1) - 2) + random.below(2 ** (level + 1));
    const id = World.docId(doc);
    this.docFolder[doc] = folder;
    this.#put('doc', id, 'parent', `folder:${World.#folderId(folder)}`);
    const owner = w * 10 + random.below(10);
    this.#put('doc', id, 'owner', World.user(owner));
    const grants: Grant[] = [{ user: owner }];
    this.docGrants[doc] = grants;
    const viewers = new Set<number>();
    for (let k = random.below(3); k > 0; k--) viewers.add(random.below(this.users));
    for (const u of viewers) {
      this.#put('doc', id, 'viewer', World.user(u));
      grants.push({ user: u, direct: true });
    }
    if (random.next() < 0.12) {
      const u = random.below(this.users);
      this.#put('doc', id, 'editor', World.user(u));
      grants.push({ user: u });
    }
    if (random.next() < 0.05) {
      const group = w * 11 + random.below(11);
      this.#put('doc', id, 'viewer', World.#groupSubject(group));
      grants.push({ group });
    }
  }

  levelOf(folder: number): number {
    return Math.floor(Math.log2(((folder % FOLDERS) + 2) / 2));
  }

  parentFolder(folder: number): number {
    const i = folder % FOLDERS;
    return i < 2 ? -1 : folder - i + ((i - 2) >> 1);
  }

  workspaceOf(folder: number): number {
    return Math.floor(folder / FOLDERS);
  }

  /** Groups that hold the user, each with the number of nested groups on the shortest way to it. */
  closure(u: number): ReadonlyMap<number, number> {
    const known = this.#memberships.get(u);
    if (known !== undefined) return known;
    const depth = new Map(at(this.#directGroups, u).map((g) => [g, 1]));
    for (const [g, n] of depth) {
      for (const p of at(this.#groupParents, g)) if (!depth.has(p)) depth.set(p, n + 1);
    }
    this.#memberships.set(u, depth);
    return depth;
  }

  isGranted(grants: readonly Grant[], u: number): boolean {
    return grants.some((g) =>
      g.group === undefined ? g.user === u : this.closure(u).has(g.group),
    );
  }

  isMember(w: number, u: number): boolean {
    const { users, groups } = at(this.#members, w);
    return users.has(u) || groups.some((g) => this.closure(u).has(g));
  }

  /** Whether the user may view the document. */
  canView(doc: number, u: number): boolean {
    if (this.isGranted(at(this.docGrants, doc), u)) return true;
    const home = at(this.docFolder, doc);
    for (let f = home; f >= 0; f = this.parentFolder(f)) {
      if (this.isGranted(at(this.folderGrants, f), u)) return true;
    }
    return this.isMember(this.workspaceOf(home), u);
  }

  /** Documents in a folder or under it. */
  docsUnder(folder: number): number[] {
    const w = this.workspaceOf(folder);
    const found: number[] = [];
    for (let doc = w * DOCS; doc < (w + 1) * DOCS; doc++) {
      for (let f = at(this.docFolder, doc); f >= 0; f = this.parentFolder(f)) {
        if (f === folder) found.push(doc);
      }
    }
    return found;
  }

  /** Users that are two to four groups away from the group. */
  nestedUsers(group: number): number[] {
    const found: number[] = [];
    let layer = [group];
    for (let depth = 1; depth <= 4 && layer.length > 0; depth++) {
      const next: number[] = [];
      for (const g of layer) {
        if (depth >= 2) found.push(...at(this.groupUsers, g));
        const i = g % 11;
        GROUP_PARENT.forEach((p, child) => p === i && next.push(g - i + child));
      }
      layer = next;
    }
    return found.filter((u) => (this.closure(u).get(group) ?? 0) >= 2);
  }
}
