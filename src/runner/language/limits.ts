/** Limits of workflow and action files. Hitting one is a problem of the file or a typed error. */

/** Characters of a workflow or action file: GitHub's own limit for workflow files. */
export const FILE_CHARACTERS_MAX = 512 * 1024;
/** Nodes below one another, aliases expanded. */
export const DEPTH_MAX = 50;
/** Nodes of one file, aliases expanded: what keeps a few nested anchors from filling the memory. */
export const NODES_MAX = 100_000;
/** Tokens of one file as its lexer counts, aliases not expanded. */
export const YAML_TOKENS_MAX = 200_000;
/** Characters of all scalars of one file, aliases expanded. */
export const SCALAR_CHARACTERS_MAX = 10 * 1024 * 1024;
/** Characters of one problem, which may quote the file. */
export const MESSAGE_CHARACTERS_MAX = 1_000;
/** Problems reported of one file. */
export const PROBLEMS_MAX = 100;
/** Workflows below a called one, the caller not counted. */
export const CALL_DEPTH_MAX = 4;
/** Jobs of a run, called ones included, matrix jobs of matrices not. */
export const JOBS_MAX = 1_000;
/** Workflow files read for one run, callers and called. */
export const CALLED_FILES_MAX = 50;
export const INPUTS_MAX = 25;
export const INPUTS_CHARACTERS_MAX = 65_535;
export const MATRIX_JOBS_MAX = 256;
/** Characters of one `cron`: all values of all fields are 356. */
export const CRON_CHARACTERS_MAX = 1_000;
/** Workflow files of one project. */
export const WORKFLOW_FILES_MAX = 1_000;

/**
 * Levels of an expression's tree. The parser limits nesting to 50, but not chains of `==`; evaluation
 * recurses, and a stack that ends within a regular expression ends the process.
 */
export const EXPRESSION_LEVELS_MAX = 300;
/** Levels of what fromJSON reads. */
export const JSON_DEPTH_MAX = 100;
/** Parse-tree nodes evaluated for one expression, and characters or items that they gave. */
export const EVALUATION_COST_MAX = 32 * 1024 * 1024;
/** Characters of a string that an expression makes. */
export const EXPRESSION_RESULT_CHARACTERS_MAX = 10 * 1024 * 1024;
/** Different hashFiles calls of one template. */
export const HASH_CALLS_MAX = 64;
export const HASH_TIMEOUT_MS = 120_000;
