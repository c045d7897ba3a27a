import type { NeutralTuple } from '../../test/support/dataset/world.ts';

/** Bans that reach documents from their folder alone (`revoked`) and from all folders above (`barred`), and approvals. */
export const BANNED_WORLD_GATE = `namespace team {
  relation member: [user]
}
namespace folder {
  relation parent: [folder]
  relation revoked: [user]
  relation barred: [user] or barred from parent
  relation viewer: [user, team#member] or viewer from parent
}
namespace doc {
  relation parent: [folder]
  relation revoked: [user] or revoked from parent
  relation barred: [user] or barred from parent
  relation approved: [user, team#member]
  relation viewer: [user] or viewer from parent
  relation can_view: viewer but not revoked
  relation can_open: viewer but not barred
  relation can_sign: viewer and approved
}
`;

/** What is listed: all of them, less flat bans, less inherited ones, and those of two relations at once. */
export const LISTED_RELATIONS = ['viewer', 'can_view', 'can_open', 'can_sign'] as const;
export type ListedRelation = (typeof LISTED_RELATIONS)[number];

/** Users who each see all documents, with other bans and approvals each. */
const USERS = 8;
const DOCS_OF_FOLDER = 20;
const FOLDERS_OF_FOLDER = 4;
/** One of so many documents is banned for a user, and one of so many folders. */
const BAN_EVERY = 64;
const at = (number: number, user: number): boolean => number % BAN_EVERY === 5 + user;

/**
 * Documents in folders of 20, four of them in a folder, those in one folder whose viewers are a team. Some 3 % are banned for a
 * user, half of them directly, and half are approved. Right lists come from arithmetic, which shares nothing with the engine.
 */
export class BannedWorld {
  readonly documents: number;
  readonly users: readonly string[] = Array.from({ length: USERS }, (_, user) => `u${user}`);
  readonly tuples: NeutralTuple[] = [];
  readonly #folders: number;

  /** `documents` are at least 800: with fewer of them no folder is banned for some users. */
  constructor(documents: number) {
    this.documents = documents;
    this.#folders = Math.ceil(documents / DOCS_OF_FOLDER);
    this.#putFolders();
    for (let doc = 0; doc < documents; doc++) this.#putDocument(doc);
  }

  /** Ids of the documents on which the user, by number, holds the relation, sorted. */
  list(relation: ListedRelation, user: number): string[] {
    const ids: string[] = [];
    for (let doc = 0; doc < this.documents; doc++) {
      if (this.#holds(relation, doc, user)) ids.push(docId(doc));
    }
    return ids;
  }

  #holds(relation: ListedRelation, doc: number, user: number): boolean {
    const folder = this.#folderOf(doc);
    switch (relation) {
      case 'viewer':
        return true;
      case 'can_view':
        return !at(doc, user) && !at(folder, user);
      case 'can_open':
        return !at(doc, user) && !at(upperOf(folder), user);
      case 'can_sign':
        return doc % 2 === 0 || doc % 16 === 1 + 2 * user;
    }
  }

  /** Neighbours in the order of ids lie in different folders. */
  #folderOf(doc: number): number {
    return doc % this.#folders;
  }

  #putFolders(): void {
    this.#put('folder', 'top', 'viewer', 'team:readers#member');
    for (const user of this.users) {
      this.#put('team', 'readers', 'member', `user:${user}`);
      this.#put('team', 'signers', 'member', `user:${user}`);
    }
    for (let upper = 0; upper <= upperOf(this.#folders - 1); upper++) {
      this.#put('folder', `m${upper}`, 'parent', 'folder:top');
      this.#ban('folder', `m${upper}`, 'barred', upper);
    }
    for (let folder = 0; folder < this.#folders; folder++) {
      this.#put('folder', `f${folder}`, 'parent', `folder:m${upperOf(folder)}`);
      this.#ban('folder', `f${folder}`, 'revoked', folder);
    }
  }

  #putDocument(doc: number): void {
    const id = docId(doc);
    this.#put('doc', id, 'parent', `folder:f${this.#folderOf(doc)}`);
    this.#ban('doc', id, 'revoked', doc);
    this.#ban('doc', id, 'barred', doc);
    if (doc % 2 === 0) this.#put('doc', id, 'approved', 'team:signers#member');
    else this.#put('doc', id, 'approved', `user:u${((doc % 16) - 1) / 2}`);
  }

  #ban(namespace: string, id: string, relation: string, number: number): void {
    this.users.forEach((user, u) => {
      if (at(number, u)) this.#put(namespace, id, relation, `user:${user}`);
    });
  }

  #put(namespace: string, objectId: string, relation: string, subject: string): void {
    this.tuples.push({ namespace, object_id: objectId, relation, subject });
  }
}

function docId(doc: number): string {
  return `d${String(doc).padStart(6, '0')}`;
}

function upperOf(folder: number): number {
  return Math.floor(folder / FOLDERS_OF_FOLDER);
}
