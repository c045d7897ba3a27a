import { generateKeyPairSync, type KeyObject } from 'node:crypto';

/** An issue, or a pull request when `pull` is there, as the host stores it. */
export type FakeIssue = {
  readonly number: number;
  title: string;
  body: string;
  state: 'open' | 'closed';
  user: string;
  labels: string[];
  created_at: string;
  updated_at: string;
  pull?: FakePull;
};
export type FakePull = {
  readonly head: string;
  base: string;
  draft: boolean;
  merged_at: string | null;
};
export type FakeComment = {
  readonly id: number;
  readonly issue: number;
  body: string;
  created_at: string;
  updated_at: string;
};
export type FakeRelease = {
  readonly id: number;
  tag_name: string;
  name: string;
  body: string;
  draft: boolean;
  prerelease: boolean;
  created_at: string;
  updated_at: string;
};
export type FakeDiscussion = {
  readonly number: number;
  title: string;
  body: string;
  closed: boolean;
  user: string;
  labels: string[];
  category: string;
  createdAt: string;
  updatedAt: string;
};
export type FakeStack = { readonly id: number; readonly number: number; pulls: number[] };
export type FakeSecret = {
  readonly name: string;
  /** As it arrived; the private key of the host opens it. */
  sealed: string;
  updated_at: string;
};

export type HostState = {
  readonly owner: string;
  readonly repo: string;
  readonly origin: string;
  readonly repositoryDir: string;
  hasStacks: boolean;
  readonly rateLimit: { limit: number; remaining: number; resetSeconds: number };
  /** Issues and pull requests by number. */
  readonly issues: Map<number, FakeIssue>;
  readonly comments: FakeComment[];
  readonly releases: FakeRelease[];
  readonly discussions: FakeDiscussion[];
  readonly stacks: FakeStack[];
  /** By environment; '' is the repository itself. Only environments that are there can be written. */
  readonly secrets: Map<string, Map<string, FakeSecret>>;
  readonly keyId: string;
  readonly privateKey: KeyObject;
  /** Base64 of the 32 bytes of the X25519 key. */
  readonly publicKey: string;
  /** The host's time; whole seconds, as its API tells. */
  now: () => string;
  nextId(): number;
  addIssue(issue?: Partial<Omit<FakeIssue, 'number'>>): FakeIssue;
  addRelease(release: Partial<FakeRelease> & { readonly tag_name: string }): FakeRelease;
  addDiscussion(discussion?: Partial<FakeDiscussion>): FakeDiscussion;
};

export function createHostState(
  owner: string,
  repo: string,
  origin: string,
  repositoryDir: string,
  hasStacks: boolean,
): HostState {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  let lastId = 1000;
  let lastNumber = 0;
  const state: HostState = {
    owner,
    repo,
    origin,
    repositoryDir,
    hasStacks,
    rateLimit: { limit: 5000, remaining: 5000, resetSeconds: Math.floor(Date.now() / 1000) + 3600 },
    issues: new Map(),
    comments: [],
    releases: [],
    discussions: [],
    stacks: [],
    secrets: new Map([['', new Map<string, FakeSecret>()]]),
    keyId: '3380204578043523366',
    privateKey,
    publicKey: Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString(
      'base64',
    ),
    now: () => `${new Date().toISOString().slice(0, 19)}Z`,
    nextId: () => ++lastId,
    addIssue(issue = {}) {
      const number = ++lastNumber;
      const at = issue.created_at ?? state.now();
      const added: FakeIssue = {
        title: `Issue ${number}`,
        body: '',
        state: 'open',
        user: 'mona',
        labels: [],
        created_at: at,
        updated_at: at,
        ...issue,
        number,
      };
      state.issues.set(number, added);
      return added;
    },
    addRelease(release) {
      const at = release.created_at ?? state.now();
      const added: FakeRelease = {
        id: state.nextId(),
        name: release.tag_name,
        body: '',
        draft: false,
        prerelease: false,
        created_at: at,
        updated_at: at,
        ...release,
      };
      state.releases.unshift(added);
      return added;
    },
    addDiscussion(discussion = {}) {
      const number = ++lastNumber;
      const at = discussion.createdAt ?? state.now();
      const added: FakeDiscussion = {
        number,
        title: `Discussion ${number}`,
        body: '',
        closed: false,
        user: 'mona',
        labels: [],
        category: 'General',
        createdAt: at,
        updatedAt: at,
        ...discussion,
      };
      state.discussions.push(added);
      return added;
    },
  };
  return state;
}
