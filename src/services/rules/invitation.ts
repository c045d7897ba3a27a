/*
 * An invitation.
 *
 * V1 One invitation makes one member at most, however many accept it at once.
 *    [test/e2e/invitations.pg.test.ts] [src/services/workspaces/concurrency.pg.test.ts]
 * V2 Only a PENDING invitation before its expiry is accepted. [test/e2e/invitations.pg.test.ts]
 * V3 The token is answered once, by CreateInvitation, and stored nowhere.
 *    [test/e2e/invitations.pg.test.ts]
 * V4 An acceptance that is refused leaves the invitation as it was.
 *    [test/e2e/invitations.pg.test.ts]
 */

/** Numbers of the proto enum. EXPIRED is never stored: it is PENDING past its expiry. */
export const PENDING = 1;
export const ACCEPTED = 2;
export const REVOKED = 3;
export const EXPIRED = 4;
export type InvitationState = typeof PENDING | typeof ACCEPTED | typeof REVOKED | typeof EXPIRED;

export type InvitationEvent = 'accept' | 'revoke';

export type InvitationOutcome =
  | { readonly next: typeof ACCEPTED | typeof REVOKED }
  /** Why it cannot be, for people. */
  | { readonly refusal: string };

/** Every event in every state. */
export const INVITATION: Readonly<
  Record<InvitationState, Readonly<Record<InvitationEvent, InvitationOutcome>>>
> = {
  [PENDING]: { accept: { next: ACCEPTED }, revoke: { next: REVOKED } },
  [ACCEPTED]: {
    accept: { refusal: 'was accepted already' },
    revoke: { refusal: 'was accepted already' },
  },
  [REVOKED]: { accept: { refusal: 'was revoked' }, revoke: { next: REVOKED } },
  [EXPIRED]: { accept: { refusal: 'has expired' }, revoke: { next: REVOKED } },
};
