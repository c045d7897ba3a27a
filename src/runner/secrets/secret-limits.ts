/** Limits of secrets and variables. Those that GitHub publishes are GitHub's. */

/** UTF-8 bytes of one secret's or variable's value. */
export const VALUE_BYTES_MAX = 48 * 1024;
/** Names and values of all variables that one run sees. */
export const VARIABLES_BYTES_MAX = 256 * 1024;
/** UTF-8 bytes of a `.env` text to import. */
export const IMPORT_BYTES_MAX = 1024 * 1024;
/** Lines of a `.env` text that may be wrong before it is taken for something else. */
export const IMPORT_SKIPPED_MAX = 1_000;
/** Secrets of one environment in one backend, and variables of one environment. */
export const ENTRIES_PER_ENVIRONMENT_MAX = 1_000;
export const ENVIRONMENTS_MAX = 200;
export const NAME_LENGTH_MAX = 255;
export const ENVIRONMENT_LENGTH_MAX = 255;
/** A file of secrets, variables or keys that is larger is refused before it is parsed. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Nesting of vault.json. */
export const JSON_DEPTH_MAX = 32;
/** Characters of an actor's origin or user agent that the audit keeps. */
export const ACTOR_TEXT_LENGTH_MAX = 256;
export const AUDIT_QUERY_DEFAULT = 100;
export const AUDIT_QUERY_MAX = 1_000;
/** Problems that one synchronisation lists; the last entry says how many more there are. */
export const SYNC_ERRORS_MAX = 100;
