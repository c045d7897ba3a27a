import type { UnreadBytes } from './own-stream.ts';
import type { Http2Headers, Http2RequestStream } from './request-stream.ts';

/** Bounds of a connection and its callbacks. */
export type ConnectionOptions = {
  readonly streamsMax: number;
  readonly headerBytesMax: number;
  readonly idleMs: number;
  readonly handshakeMs: number;
  /** Time in ms without progress after which an answer is given up; it may take half as long again. */
  readonly answerStallMs: number;
  readonly onStream: (stream: Http2RequestStream, headers: Http2Headers) => void;
  /** Makes the buffer for bytes of bodies that wait for their readers, counted against `owner`; '' for an unknown caller. */
  readonly newUnread: (owner: string) => UnreadBytes;
  /** Callback for a stream that was opened (1), or is over and its answer with the kernel (-1). */
  readonly onCount: (change: 1 | -1) => void;
  /** Called when the socket has closed. */
  readonly onClose: () => void;
  readonly onIncident: (event: string, detail: string) => void;
};

/** Streams that one connection may open and drop in a burst, and a second after that (rapid reset). */
export const RESET_BURST = 1_000;
export const RESET_PER_SECOND = 33;
export const RESET_RATE = { burst: RESET_BURST, perSecond: RESET_PER_SECOND };
/** Bytes of request body that a stream may send before they are read; a connection likewise, before they are processed. */
export const WINDOW_BYTES = 1_048_576;
/** Bytes used of a window after which they are released to the peer. */
export const WINDOW_STEP_BYTES = WINDOW_BYTES / 2;
/** Resets by either side, and bytes of header blocks, after which other connections have their turn. */
export const RESETS_A_TURN = 16;
export const BLOCK_BYTES_A_TURN = 8_192;
export const SETTINGS_PER_FRAME_MAX = 32;
/** Streams refused in a row because too many were open. */
export const REJECTED_STREAMS_MAX = 100;
/** Fields of one request. */
export const FIELDS_MAX = 128;
/** CONTINUATION frames of one request, in addition to the HEADERS frame. */
export const CONTINUATIONS_MAX = 8;
/** Bytes of an encoded header block; the limit of header bytes bounds the decoded list. */
export const BLOCK_BYTES_MAX = 65_536;
/**
 * Bytes of header blocks that have not come whole: those that each connection may hold, and those that all may hold beyond
 * that.
 */
export const BLOCK_BYTES_SPARE = 8_192;
export const BLOCKS_BYTES_MAX = 4 * 1_048_576;
/** Bytes of a frame that has not come whole, above which its connection gives up its caches. */
export const HELD_SPARE = 8_192;
/** Ids remembered of streams that we reset: frames that the peer sent before it knew are not its fault. */
export const KNOWN_RESETS_MAX = 512;
/** Answers to SETTINGS and PING, and resets, that the peer has not taken. */
export const CONTROL_FRAMES_MAX = 500;
/** Bytes of answers that wait for windows; beyond them no stream is opened. */
export const QUEUED_BYTES_MAX = 64 * 1_048_576;
/** Bytes of bodies that no reader has taken; beyond them the window of the connection is not opened. */
export const UNREAD_BYTES_MAX = 64 * 1_048_576;
/** Bytes on the way to the kernel; beyond them no data is sent. */
export const OUTPUT_BYTES_MAX = 262_144;
/** Bytes of output that the kernel has not taken; beyond them nothing is read, so that no answers are added. */
export const BACKLOG_BYTES_MAX = 4_096;
/** Frames that a body may have in addition to one per 16 bytes: it must not come in tiny pieces. */
export const BODY_FRAMES_SPARE = 256;
export const BODY_BYTES_A_FRAME = 16;
/**
 * Time in ms that a peer which sends nothing is waited for while it reads the last frames. It is the total time for a peer
 * that broke the protocol.
 */
export const FAREWELL_MS = 1_000;
