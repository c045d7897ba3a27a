/** One limit of the authorization service. */
export type LimitRow = {
  readonly what: string;
  /**
   * Figures stand in braces and come from the code: `{GATEWAY_X}` is a setting with its default,
   * `{file.NAME}` the constant or property NAME of the file `file.ts`. No other figures may stand here.
   */
  readonly limit: string;
  readonly beyond: string;
};

const EXHAUSTED = 'resource_exhausted';
const TOO_LARGE = `${EXHAUSTED} (\`FIELD_TOO_LARGE\`)`;

/** What bounds what a caller, a tenant or a peer can make the service do or hold; docs/limits.md. */
export const LIMITS: readonly LimitRow[] = [
  { what: 'request body', limit: '{GATEWAY_MAX_BODY_BYTES}', beyond: EXHAUSTED },
  { what: 'updates in a write', limit: '{GATEWAY_MAX_WRITE_UPDATES}', beyond: EXHAUSTED },
  { what: 'items in a batch', limit: '{GATEWAY_MAX_BATCH_ITEMS}', beyond: EXHAUSTED },
  {
    what: 'contextual tuples of a query; updates of a WhatIf',
    limit: '{scoped-query.CONTEXTUAL_TUPLES_MAX}; {what-if-handlers.WHAT_IF_UPDATES_MAX}',
    beyond: EXHAUSTED,
  },
  {
    what: 'reads of an evaluation',
    limit:
      "{GATEWAY_MAX_CHECK_READS}, or the project's; a batch {worker-settings.batchBudgetFactor} times that",
    beyond: "resource_exhausted, in a batch the item's error",
  },
  { what: 'nodes on a path', limit: '{GATEWAY_MAX_CHECK_DEPTH}', beyond: 'denies' },
  {
    what: 'time of a request',
    limit: "{GATEWAY_REQUEST_TIMEOUT_MS}, or the caller's if shorter",
    beyond:
      'deadline_exceeded; unavailable where the caller stated none and its tenant is loaded or catches up',
  },
  {
    what: 'one slice of an evaluation',
    limit: '{worker-settings.sliceMs}',
    beyond: 'messages are looked at, short requests and other shards served, then it goes on',
  },
  {
    what: 'requests waiting for a worker, for a shard',
    limit: '{GATEWAY_WORKER_QUEUE_MAX}; {GATEWAY_SHARD_QUEUE_MAX}',
    beyond: EXHAUSTED,
  },
  {
    what: 'bytes of requests waiting for a worker',
    limit: '{workers.QUEUE_BYTES_MAX}; one shard has at most what is left for the others',
    beyond: EXHAUSTED,
  },
  {
    what: 'requests over {shard-queue.LARGE_REQUEST_BYTES} that a worker has of one shard',
    limit: '{fair-queue.LARGE_SENT_BYTES_MAX}, or one',
    beyond: 'they wait',
  },
  {
    what: 'bodies that a worker decodes at a time',
    limit: '{job-context.BYTES_MAX}, or one',
    beyond: `${EXHAUSTED} (\`BODY_MEMORY_EXHAUSTED\`)`,
  },
  {
    what: 'wait of a request behind others of its shard',
    limit: 'a share of its time left ({slot-requests.WAIT_SHARE_MAX}), by what the last one waited',
    beyond: EXHAUSTED,
  },
  { what: 'writes waiting for a shard', limit: '{GATEWAY_WRITE_QUEUE_MAX}', beyond: EXHAUSTED },
  {
    what: 'tuples of one ReadRelationTuples',
    limit: '{services.READ_TUPLES_MAX}',
    beyond: EXHAUSTED,
  },
  { what: 'grants of one export', limit: '{services.EXPORT_GRANTS_MAX}', beyond: EXHAUSTED },
  {
    what: 'entries of one list of rows',
    limit: '{snapshot-read.LIST_ROWS_MAX}',
    beyond: EXHAUSTED,
  },
  {
    what: 'long lists of rows at once',
    limit: 'a quarter of `GATEWAY_PG_POOL_SIZE`, {read-slots.WAITING_MAX} more waiting',
    beyond: EXHAUSTED,
  },
  {
    what: 'model of a project',
    limit:
      '{model-document.MODEL_NAMESPACES_MAX} namespaces, {model-document.MODEL_RELATIONS_MAX} relations each, nesting {model-document.MODEL_NESTING_MAX}, {model-subjects.MODEL_SUBJECTS_MAX} subjects of a relation, {model-conditions.MODEL_CONDITIONS_MAX} conditions; each key of an object once',
    beyond: 'invalid_argument',
  },
  { what: 'object and user ids', limit: '{names.ID_BYTES_MAX}', beyond: 'invalid_argument' },
  {
    what: 'workers of one shard',
    limit: '{GATEWAY_SHARD_WORKERS}',
    beyond: 'its owner alone; the same where no other has time and room',
  },
  {
    what: 'memory of indexes',
    limit: '{GATEWAY_INDEX_BYTES}',
    beyond: 'least recently used shards go; a shard that never fits is an error',
  },
  {
    what: 'hints waiting to be sent',
    limit: '{services.NOTIFY_SHARDS_MAX} shards, one statement under way',
    beyond: 'left to the poll (`gatehouse_notify_hints_total{outcome="lost"}`)',
  },
  {
    what: 'changes kept',
    limit: '{GATEWAY_CHANGE_RETENTION_SECONDS}, and {upkeep.CHANGES_PER_SHARD_MAX} a shard',
    beyond: 'a worker further behind loads a snapshot',
  },
  {
    what: 'connections',
    limit: '{http-limits.connectionsMax}; {http-limits.http2StreamsMax} streams on one of HTTP/2',
    beyond: 'closed at accept; refused',
  },
  {
    what: 'header blocks of one connection of HTTP/2',
    limit:
      'lists of {http-limits.HEADER_BYTES_MAX} and {connection-options.FIELDS_MAX} fields, {connection-options.CONTINUATIONS_MAX} CONTINUATION frames and {connection-options.BLOCK_BYTES_MAX} a block ({connection-options.BLOCK_BYTES_SPARE} while it is not whole, and {connection-options.BLOCKS_BYTES_MAX} of all connections beyond that); {dynamic-table.TABLE_BYTES_MAX} of HPACK table, {hpack-decoder.REMEMBERED_BYTES_MAX} of values and one head remembered',
    beyond: 'a stream or the connection ends with ENHANCE_YOUR_CALM',
  },
  {
    what: 'frames of one connection of HTTP/2 that ask for work',
    limit:
      '{connection-options.RESET_BURST} resets at once and {connection-options.RESET_PER_SECOND} a second, {connection-options.RESETS_A_TURN} of them or {connection-options.BLOCK_BYTES_A_TURN} of header blocks a turn; {connection-options.CONTROL_FRAMES_MAX} answers to SETTINGS and PING not taken',
    beyond: 'the connection ends with ENHANCE_YOUR_CALM',
  },
  {
    what: 'bytes of one connection of HTTP/2',
    limit:
      '{connection-options.WINDOW_BYTES} of a body unread a stream, {connection-options.UNREAD_BYTES_MAX} of all; {connection-options.QUEUED_BYTES_MAX} of answers waiting for windows, {connection-options.OUTPUT_BYTES_MAX} with the socket, {connection-options.BACKLOG_BYTES_MAX} of them before nothing more is read',
    beyond: 'nothing more is read of who takes nothing',
  },
  {
    what: 'items of a list of a request that has no limit of its own',
    limit: '{decode-limits.LIST_ITEMS_MAX}',
    beyond: `${EXHAUSTED} (\`BATCH_TOO_LARGE\`)`,
  },
  {
    what: 'members and list entries of one context, `condition_params` or `data`; its bytes as they come',
    limit: '{decode-limits.STRUCT_VALUES_MAX}; {decode-limits.STRUCT_BYTES_MAX}',
    beyond: TOO_LARGE,
  },
  {
    what: 'bytes of a text of a request as it comes, escapes with it: of a model; of a file of assertions; of any other',
    limit:
      '{request-limits.MODEL_TEXT_BYTES_MAX}; {request-limits.ASSERTIONS_TEXT_BYTES_MAX}; {decode-limits.TEXT_BYTES_MAX}',
    beyond: TOO_LARGE,
  },
  {
    what: 'one item of a list; a request without its lists and long texts',
    limit:
      '{decode-limits.ITEM_BYTES_MAX}, {decode-limits.FIELDS_MAX} fields; {decode-limits.REST_BYTES_MAX}',
    beyond: TOO_LARGE,
  },
  {
    what: 'bytes of a number or the name of an enum; levels; fields that the message does not have',
    limit:
      '{decode-limits.TOKEN_BYTES_MAX}; {decode-limits.DEPTH_MAX}; {decode-limits.UNKNOWN_MAX}',
    beyond: 'invalid_argument (`BODY_MALFORMED`)',
  },
  {
    what: 'fields of one protobuf message that are no lists, and come again',
    limit: '{decode-limits.REPEATS_MAX}',
    beyond: TOO_LARGE,
  },
  {
    what: 'one line of an import',
    limit:
      '{tuple-lines.bytesMax}, {decode-limits.STRUCT_VALUES_MAX} values in its context and some more',
    beyond: '`BODY_TOO_LARGE`, `FIELD_INVALID`, naming the line',
  },
  {
    what: "reading of requests that are not small, on the gateway's thread",
    limit:
      '{slice-queue.SLICE_MS} a turn of the loop, of all of them together; {gzip.RUNNING_MAX} bodies are decompressed at once',
    beyond: 'they take turns',
  },
  {
    what: 'memory of request bodies, of all connections',
    limit:
      '{GATEWAY_BODY_MEMORY_BYTES}; half of it a caller, an eighth what is not authenticated yet',
    beyond: 'quiet unfinished bodies are cut, then resource_exhausted (`BODY_MEMORY_EXHAUSTED`)',
  },
  {
    what: 'pieces of a body',
    limit:
      '{body-intake.PIECES_SPARE} and one for each {body-intake.BYTES_A_PIECE}; {connection-options.BODY_FRAMES_SPARE} DATA frames of HTTP/2',
    beyond: `${EXHAUSTED} (\`BODY_IN_CRUMBS\`); ENHANCE_YOUR_CALM`,
  },
  {
    what: 'answers that nobody reads',
    limit:
      '{unread-answers.UNREAD_BYTES_MAX} of all connections; {GATEWAY_STREAM_STALL_SECONDS} without progress',
    beyond:
      'of who holds most the oldest are reset (`answer_unread` in the log); reset (`answer_stalled`)',
  },
  {
    what: 'header block of HTTP/1.1',
    limit: '{http-limits.HEADER_BYTES_MAX}',
    beyond: 'status 431',
  },
  {
    what: 'metric series by namespace and relation',
    limit: '{decision-counts.DECISION_PAIRS_MAX} pairs',
    beyond: 'counted as `other`',
  },
  {
    what: 'instances on one database',
    limit: 'by the connections that PostgreSQL grants',
    beyond: 'a start is refused',
  },
  {
    what: 'reads waiting for the read index',
    limit:
      '`GATEWAY_WORKERS` × `GATEWAY_WORKER_QUEUE_MAX`, {services/reads/read-index.WAIT_MAX_MS}',
    beyond: 'resource_exhausted; unavailable',
  },
  {
    what: 'shards in one query of it, changes beside them',
    limit:
      '{sql/reads/read-index.INDEX_SHARDS_MAX}; {sql/reads/read-index.CARRIED_BYTES_MAX}, {sql/reads/read-index.CARRIED_ROWS_PER_SHARD} a shard',
    beyond: 'the next query; read by the worker',
  },
];
