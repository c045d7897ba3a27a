import type { ClientBase } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';
import type { ListQuery } from './memberships.ts';

export type InvitationRow = {
  readonly id: string;
  readonly workspace_id: string;
  readonly email: string;
  readonly role: number;
  /** 4 (EXPIRED) where a pending one is past its expiry, by the database's clock. */
  readonly status: number;
  readonly invited_by_user_id: string;
  readonly created_at_us: string;
  readonly expires_at_us: string;
};

const COLUMNS = `i.id, i.workspace_id, i.email, i.role,
  case when i.status = 1 and i.expires_at <= clock_timestamp() then 4 else i.status end as status,
  i.invited_by_user_id,
  (extract(epoch from i.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from i.expires_at) * 1000000)::bigint::text as expires_at_us`;

/** The invitation with this id or the hash of this token, or undefined. */
export async function selectInvitation(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  by: { readonly id: string } | { readonly tokenHash: Buffer },
): Promise<InvitationRow | undefined> {
  const isById = 'id' in by;
  const { rows } = await client.query<InvitationRow>({
    name: isById ? 'select_invitation_by_id' : 'select_invitation_by_token',
    text: `select ${COLUMNS} from invitation i where i.project_id = $1 and i.tenant_id = $2
      and ${isById ? 'i.id = $3' : 'i.token_hash = $3'}`,
    values: [projectId, tenantId, isById ? by.id : by.tokenHash],
  });
  return rows[0];
}

/** The invitations to a workspace by id, which is the order of their making, as InvitationRow. */
export function invitationsQuery(
  { projectId, tenantId }: ShardKey,
  workspaceId: string,
): ListQuery {
  return {
    text: `select ${COLUMNS} from invitation i
      where i.project_id = $1 and i.tenant_id = $2 and i.workspace_id = $3 order by i.id`,
    values: [projectId, tenantId, workspaceId],
  };
}

/** Makes a PENDING invitation that expires `ttlUs` microseconds from now. */
export async function insertInvitation(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  invitation: {
    readonly id: string;
    readonly workspaceId: string;
    readonly email: string;
    readonly role: number;
    readonly invitedByUserId: string;
    readonly tokenHash: Buffer;
    readonly ttlUs: number;
  },
): Promise<InvitationRow> {
  const { rows } = await client.query<InvitationRow>({
    name: 'insert_invitation',
    text: `insert into invitation as i (project_id, tenant_id, id, workspace_id, email, role,
        status, invited_by_user_id, token_hash, expires_at)
      values ($1, $2, $3, $4, $5, $6::smallint, 1, $7, $8,
        now() + $9::bigint * interval '1 microsecond')
      returning ${COLUMNS}`,
    values: [
      projectId,
      tenantId,
      invitation.id,
      invitation.workspaceId,
      invitation.email,
      invitation.role,
      invitation.invitedByUserId,
      invitation.tokenHash,
      invitation.ttlUs,
    ],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('an insert returns its row');
  return row;
}

/** Sets the state: ACCEPTED (2) by a user, or REVOKED (3) with null. */
export async function updateInvitation(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  invitationId: string,
  change: { readonly status: number; readonly acceptedByUserId: string | null },
): Promise<void> {
  await client.query({
    name: 'update_invitation',
    text: `update invitation i set status = $4::smallint, accepted_by_user_id = $5
      where i.project_id = $1 and i.tenant_id = $2 and i.id = $3`,
    values: [projectId, tenantId, invitationId, change.status, change.acceptedByUserId],
  });
}
