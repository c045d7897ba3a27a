/*
 * A project.
 *
 * J1 Any status may follow any; an update that names none keeps the one that is.
 *    [src/services/projects/project-service.pg.test.ts]
 * J2 A suspended project answers nothing about its data but DeprovisionUser and
 *    ExportSubjectGrants; AdminService always answers. [test/e2e/invitations.pg.test.ts]
 */

/** Status of a project as the proto enum numbers it. */
export const PROJECT_ACTIVE = 1;
export const PROJECT_SUSPENDED = 2;
export type ProjectStatus = typeof PROJECT_ACTIVE | typeof PROJECT_SUSPENDED;

/** UpdateProject with this status; `keep` is PROJECT_STATUS_UNSPECIFIED. */
export type ProjectEvent = 'keep' | 'activate' | 'suspend';

/** Every event in every state; `store/sql/projects/projects.ts` moves the row so. */
export const PROJECT: Readonly<
  Record<ProjectStatus, Readonly<Record<ProjectEvent, ProjectStatus>>>
> = {
  [PROJECT_ACTIVE]: { keep: PROJECT_ACTIVE, activate: PROJECT_ACTIVE, suspend: PROJECT_SUSPENDED },
  [PROJECT_SUSPENDED]: {
    keep: PROJECT_SUSPENDED,
    activate: PROJECT_ACTIVE,
    suspend: PROJECT_SUSPENDED,
  },
};

/** Kinds of calls on a project's data: all, and DeprovisionUser with ExportSubjectGrants. */
export type GuardMode = 'data' | 'subject-rights';

/** Whether a project in this state answers such calls. */
export const PROJECT_ANSWERS: Readonly<
  Record<ProjectStatus, Readonly<Record<GuardMode, boolean>>>
> = {
  [PROJECT_ACTIVE]: { data: true, 'subject-rights': true },
  [PROJECT_SUSPENDED]: { data: false, 'subject-rights': true },
};
