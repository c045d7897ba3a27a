import type { Pool } from 'pg';

/*
 * The slow, obvious answer to which tuples must exist: those that the rows of workspaces, enrollments
 * and seats ask for, and the plain memberships of groups, which are tuples and nothing else. Tuples as
 * text, `tenant|namespace:id#relation@subject`, sorted.
 */

const SUBJECT = (namespace: string, id: string, relation: string): string =>
  namespace === '' ? id : `${namespace}:${id}#${relation}`;

/** Every stored tuple of the project. */
export async function storedTuples(pool: Pool, projectId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<Record<string, string>>(
    `select tenant_id, namespace, object_id, relation, subject_namespace, subject_id,
       subject_relation
     from relation_tuple where project_id = $1`,
    [projectId],
  );
  return rows
    .map((row) => {
      const { tenant_id: tenant, namespace, object_id: id, relation } = row;
      const subject = SUBJECT(
        row['subject_namespace'] ?? '',
        row['subject_id'] ?? '',
        row['subject_relation'] ?? '',
      );
      return `${tenant}|${namespace}:${id}#${relation}@${subject}`;
    })
    .sort();
}

/** The tuples that the changelog makes from nothing; throws where it deletes what was not there. */
export async function replayedTuples(pool: Pool, projectId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ tenant_id: string; changes: string }>(
    'select tenant_id, changes from tuple_change where project_id = $1 order by tenant_id, seq',
    [projectId],
  );
  const tuples = new Set<string>();
  for (const { tenant_id: tenant, changes } of rows) {
    for (const change of JSON.parse(changes) as [number, ...string[]][]) {
      const [op, namespace, id, relation, ...subject] = change;
      const of = SUBJECT(subject[0] ?? '', subject[1] ?? '', subject[2] ?? '');
      const tuple = `${tenant}|${namespace}:${id}#${relation}@${of}`;
      if (op === 1) tuples.add(tuple);
      else if (!tuples.delete(tuple)) throw new Error(`${tuple} was deleted but not there`);
    }
  }
  return [...tuples].sort();
}

/** The tuples that the rows of the project ask for; plain memberships are not among them. */
export async function tuplesOfRows(pool: Pool, projectId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ text: string }>(
    `select tenant_id || '|workspace:' || workspace_id || '#'
         || (array['owner', 'admin', 'member', 'guest'])[role] || '@' || user_id as text
       from membership where project_id = $1 and status = 1
     union all
     select tenant_id || '|group:' || group_id || '#member@'
         || case member_kind when 1 then member_id else 'group:' || member_id || '#member' end
       from enrollment where project_id = $1 and state in (2, 3)
     union all
     select tenant_id || '|seat:' || sku || '#holder@' || user_id
       from seat_assignment where project_id = $1`,
    [projectId],
  );
  return rows.map((row) => row.text).sort();
}

/** Memberships with an enrollment row, as the text of their tuple, whether it exists or not. */
export async function enrolledMembers(pool: Pool, projectId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ text: string }>(
    `select tenant_id || '|group:' || group_id || '#member@'
         || case member_kind when 1 then member_id else 'group:' || member_id || '#member' end
         as text
     from enrollment where project_id = $1`,
    [projectId],
  );
  return rows.map((row) => row.text).sort();
}

/** Rows that contradict each other, whatever happened: should be empty. */
export async function brokenRows(pool: Pool, projectId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ text: string }>(
    `select 'seats used of ' || l.sku as text from seat_limit l
       where l.project_id = $1 and l.used <> (
         select count(*) from seat_assignment a where a.project_id = l.project_id
           and a.tenant_id = l.tenant_id and a.sku = l.sku)
     union all
     select 'enrolled group ' || e.member_id from enrollment e
       where e.project_id = $1 and e.member_kind = 2 and not exists (
         select from user_group g where g.project_id = e.project_id
           and g.tenant_id = e.tenant_id and g.id = e.member_id)
     union all
     select 'owners of ' || w.id from workspace w
       where w.project_id = $1 and 1 <> (
         select count(*) from membership m where m.project_id = w.project_id
           and m.tenant_id = w.tenant_id and m.workspace_id = w.id and m.role = 1
           and m.status = 1 and m.user_id = w.owner_user_id)
     union all
     select 'members of personal ' || m.workspace_id from membership m
       join workspace w on w.project_id = m.project_id and w.tenant_id = m.tenant_id
         and w.id = m.workspace_id
       where w.project_id = $1 and w.type = 1 and m.user_id <> w.owner_user_id
     union all
     select 'tuple of group ' || t.object_id from relation_tuple t
       where t.project_id = $1 and t.namespace = 'group' and not exists (
         select from user_group g where g.project_id = t.project_id
           and g.tenant_id = t.tenant_id and g.id = t.object_id)
     union all
     select 'tuple of member group ' || t.subject_id from relation_tuple t
       where t.project_id = $1 and t.subject_namespace = 'group' and not exists (
         select from user_group g where g.project_id = t.project_id
           and g.tenant_id = t.tenant_id and g.id = t.subject_id)`,
    [projectId],
  );
  return rows.map((row) => row.text);
}

/** What is known of memberships of groups without looking at the database. */
export class GroupModel {
  /** Plain members, and members with a row, as the text of their tuple. */
  readonly plain = new Set<string>();
  readonly enrolled = new Set<string>();

  added(text: string): void {
    if (!this.enrolled.has(text)) this.plain.add(text);
  }

  removed(text: string): void {
    this.plain.delete(text);
  }

  stateSet(text: string): void {
    this.plain.delete(text);
    this.enrolled.add(text);
  }

  /** A group has gone: everything that names it. */
  groupDeleted(groupId: string): void {
    for (const all of [this.plain, this.enrolled]) {
      for (const text of all) if (text.includes(`group:${groupId}#`)) all.delete(text);
    }
  }
}
