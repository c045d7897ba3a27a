/* Numbers of RFC 9113. */

/** "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const FRAME_HEAD_BYTES = 9;
/** Bytes of a payload, ours and the peer's: the least that a peer may allow, and all that we allow. */
export const FRAME_BYTES_MAX = 16_384;
export const WINDOW_MAX = 2 ** 31 - 1;
/** Window of streams and connections until a setting or an update changes it. */
export const WINDOW_FIRST = 65_535;
export const STREAM_ID_MAX = 2 ** 31 - 1;

/** Types of frames. */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

/** Flags of frames. */
export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITIZED = 0x20;

/** Names of settings. */
export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
export const MAX_FRAME_SIZE = 5;
export const MAX_HEADER_LIST_SIZE = 6;

/** Codes of errors. */
export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const INTERNAL_ERROR = 2;
export const FLOW_CONTROL_ERROR = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const ENHANCE_YOUR_CALM = 11;

/** Bytes of the payloads of PRIORITY and PING, and at least of GOAWAY. */
export const PRIORITY_BYTES = 5;
export const PING_BYTES = 8;
export const GOAWAY_BYTES_MIN = 8;
